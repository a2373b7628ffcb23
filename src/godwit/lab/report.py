"""Writes a page for each experiment with its figures, and the score of all.

    FOLDER/index.md              the score, and how to reproduce it
           static-tree.md        question, setup, figures, claims, values, remarks
           static-tree-hops.png  ...
           static-tree.json      the summary; the score is made from these

The same results give the same bytes: no dates, no machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from godwit.lab import text_tables
from godwit.lab.declaration import Experiment, Figure, NotMeasuredError, Results
from godwit.lab.plots import save
from godwit.lab.rules import Verdict
from godwit.lab.summary import Summary, summarise
from godwit.lab.text_tables import Grid, markdown

INTRODUCTION = """\
# Results

Results of the experiments, compared with what papers and theory state. The rule that decides a
claim is fixed with the experiment, before it is run.

reproduced
: within the rule: 10% relative for a ratio, a stated error for a prediction, an inequality for a
  shape

exceeded
: better than stated

not reproduced
: worse than the rule allows; the page says why, as far as we know

not measured at this scale
: the claim is about cases that only a larger scale has

"""
RERUN = """\

## Reproduce

```
godwit lab list                        # the experiments
godwit lab run NAME --scale small      # less than a minute
godwit lab run NAME --scale paper      # the paper's sizes; complete runs are not repeated
godwit lab report --scale paper        # writes these pages
```

Simulated numbers depend only on the seed. Those of live runs depend on the machine.
"""


def write_page(experiment: Experiment, scale: str, results: Results, folder: Path) -> None:
    """The page of one experiment, its figures and its summary."""
    folder.mkdir(parents=True, exist_ok=True)
    summary = summarise(experiment, scale, results)
    drawn = [figure for figure in experiment.figures if _draw(figure, experiment, results, folder)]
    (folder / f"{experiment.name}.md").write_text(page(experiment, summary, drawn))
    formatted = msgspec.json.format(summary.to_json(), indent=1)
    (folder / f"{experiment.name}.json").write_bytes(formatted + b"\n")


def _draw(figure: Figure, experiment: Experiment, results: Results, folder: Path) -> bool:
    """False for a figure of cases that were not measured at this scale."""
    path = folder / f"{experiment.name}-{figure.name}.png"
    try:
        save(figure, results, path)
    except NotMeasuredError:
        path.unlink(missing_ok=True)
        return False
    return True


def write_index(experiments: Sequence[Experiment], folder: Path) -> None:
    """The score of all experiments that have a page in the folder."""
    (folder / "index.md").write_text(index(experiments, folder))


def page(experiment: Experiment, summary: Summary, figures: Sequence[Figure]) -> str:
    seeds = ", ".join(map(str, summary.seeds))
    command = (
        f"godwit lab run {experiment.name} --scale {summary.scale} --seeds {len(summary.seeds)}"
    )
    sections = [
        f"# {experiment.title}\n",
        f"{experiment.question}\n",
        "## Setup\n",
        f"{experiment.setup.strip()}\n",
        f"Scale *{summary.scale}*, seeds {seeds}: `{command}`.\n",
    ]
    if figures:
        sections.append("## Figures\n")
        for figure in figures:
            file = f"{experiment.name}-{figure.name}.png"
            sections.append(f"![{figure.name}]({file})\n\n{figure.caption}\n")
    if summary.claims:
        sections += ["## Claims\n", markdown(text_tables.claims(summary))]
        sections.append("For a shape, *measured* is the share of the seeds for which it holds.\n")
    if experiment.remarks:
        sections += ["## Remarks\n", f"{experiment.remarks.strip()}\n"]
    sections += ["## Values\n", "Mean ± standard deviation over the seeds.\n"]
    sections.append(markdown(_meanings(experiment)))
    sections += [markdown(grid) for grid in text_tables.values(summary)]
    return "\n".join(sections)


def _meanings(experiment: Experiment) -> Grid:
    listed = {name: each for name, each in experiment.measures.items() if each.is_listed}
    rows = [[name, each.unit, each.meaning] for name, each in listed.items()]
    return Grid(["measure", "unit", "meaning"], rows)


def index(experiments: Sequence[Experiment], folder: Path) -> str:
    found = []
    for experiment in experiments:
        path = folder / f"{experiment.name}.json"
        if path.exists():
            found.append((experiment, Summary.from_json(path.read_bytes())))
    total = {verdict: sum(each.count(verdict) for _, each in found) for verdict in Verdict}
    shown = [each for each in Verdict if each is not Verdict.NOT_MEASURED or total[each]]
    rows = []
    for experiment, summary in found:
        link = f"[{experiment.name}]({experiment.name}.md)"
        counts = [str(summary.count(verdict)) for verdict in shown]
        rows.append([link, experiment.title, summary.scale, *counts])
    rows.append(["all", "", "", *(str(total[verdict]) for verdict in shown)])
    headings = ["experiment", "", "scale", *(verdict.value for verdict in shown)]
    return INTRODUCTION + markdown(Grid(headings, rows)) + RERUN
