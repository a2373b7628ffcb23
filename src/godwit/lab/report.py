"""Writes results down: a page for each experiment with its figures, and the score of all.

    FOLDER/index.md              the score, and how to get it again
           static-tree.md        question, setup, figures, claims, values, remarks
           static-tree-hops.png  ...
           static-tree.json      the summary, of which the score is made

The same results give the same bytes: no dates, no machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from godwit.lab import tables
from godwit.lab.claims import Verdict
from godwit.lab.experiment import Experiment, Results
from godwit.lab.plots import save
from godwit.lab.summary import Summary, summarise
from godwit.lab.tables import Grid, markdown

INTRODUCTION = """\
# Results

What the experiments of Godwit found, beside what papers and theory say. The rule that decides a
claim is fixed with the experiment, before it is run.

reproduced
: within the rule: 10% relative for a ratio, a stated error for a prediction, an inequality for a
  shape

exceeded
: better than stated

not reproduced
: all others; the page says why, as far as we know

"""
RERUN = """\

## Run it again

```
godwit lab list                        # what there is
godwit lab run NAME --scale small      # less than a minute
godwit lab run NAME --scale paper      # the paper's sizes; complete runs are not made again
godwit lab report --scale paper        # writes these pages
```

Simulated numbers depend on the seed and on nothing else. Those of live runs depend on the machine.
"""


def write_page(experiment: Experiment, scale: str, results: Results, folder: Path) -> None:
    """The page of one experiment, its figures and its summary."""
    folder.mkdir(parents=True, exist_ok=True)
    summary = summarise(experiment, scale, results)
    for figure in experiment.figures:
        save(figure, results, folder / f"{experiment.name}-{figure.name}.png")
    (folder / f"{experiment.name}.md").write_text(page(experiment, summary))
    formatted = msgspec.json.format(summary.to_json(), indent=1)
    (folder / f"{experiment.name}.json").write_bytes(formatted + b"\n")


def write_index(experiments: Sequence[Experiment], folder: Path) -> None:
    """The score of all experiments that have a page in the folder."""
    (folder / "index.md").write_text(index(experiments, folder))


def page(experiment: Experiment, summary: Summary) -> str:
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
    if experiment.figures:
        sections.append("## Figures\n")
        for figure in experiment.figures:
            file = f"{experiment.name}-{figure.name}.png"
            sections.append(f"![{figure.name}]({file})\n\n{figure.caption}\n")
    if summary.claims:
        sections += ["## Claims\n", markdown(tables.claims(summary))]
        sections.append("Of a shape, *measured* is the share of the seeds for which it holds.\n")
    if experiment.remarks:
        sections += ["## Remarks\n", f"{experiment.remarks.strip()}\n"]
    sections += ["## Values\n", "Mean ± standard deviation over the seeds.\n"]
    sections.append(markdown(_meanings(experiment)))
    sections += [markdown(grid) for grid in tables.values(summary)]
    return "\n".join(sections)


def _meanings(experiment: Experiment) -> Grid:
    rows = [[name, each.unit, each.meaning] for name, each in experiment.measures.items()]
    return Grid(["measure", "unit", "meaning"], rows)


def index(experiments: Sequence[Experiment], folder: Path) -> str:
    rows = []
    total = dict.fromkeys(Verdict, 0)
    for experiment in experiments:
        path = folder / f"{experiment.name}.json"
        if not path.exists():
            continue
        summary = Summary.from_json(path.read_bytes())
        for verdict in Verdict:
            total[verdict] += summary.count(verdict)
        link = f"[{experiment.name}]({experiment.name}.md)"
        counts = [str(summary.count(verdict)) for verdict in Verdict]
        rows.append([link, experiment.title, summary.scale, *counts])
    rows.append(["all", "", "", *(str(count) for count in total.values())])
    headings = ["experiment", "", "scale", *(verdict.value for verdict in Verdict)]
    return INTRODUCTION + markdown(Grid(headings, rows)) + RERUN
