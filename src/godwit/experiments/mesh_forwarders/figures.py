"""Table 2 and figure 11 of the paper."""

from __future__ import annotations

from godwit.experiments.mesh.figures import by_strategy, curves
from godwit.experiments.mesh.measures import BUCKET_S
from godwit.lab.declaration import Figure

FIGURES = (
    Figure(
        "pure-forwards", "Publications handled by brokers that only sent them on (table 2).",
        by_strategy("pure_forwards", "pure forwards"),
    ),
    Figure(
        "yield", "Delivered publications of all that brokers handled (table 2).",
        by_strategy("yield", "yield, %", 100.0),
    ),
    Figure(
        "traffic", "Publications between brokers, DT2 (figure 11).",
        curves("DT2", "traffic", "time, s", "messages/s", x_factor=BUCKET_S),
    ),
)  # fmt: skip
