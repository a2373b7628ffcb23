"""Measures of sessions and moves, from decisions.

A session counts when both sides have agreed to it; it is *moving* if a client moved.  The one that
began last before the step of the rate is when the loads had converged.

slight    a session that no overload started, and whose difference was at most twice the trigger
quiet     an outcome of a session that no overload started, and during which and in the 40 s
          before which no subscriber joined and no rate stepped up: its error is that of the
          estimates, and not of what happened meanwhile.  Estimates start from the averages of a
          detection interval.  In an overload meters show what is sent, and not what is asked for.
followed  a moving session that another one follows, of the same two brokers and the same metric, as
          soon as the loads have settled
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from godwit.experiments.balance.load_measures import TRIGGER
from godwit.experiments.balance.readings import Decided
from godwit.experiments.balance.scenes import Scene

#: Two stabilize durations and the longest wait for a detection.
FOLLOWS_WITHIN_S = 100.0
SLIGHT = 2 * TRIGGER
#: The longest detection interval, over which loads are averaged.
AVERAGED_S = 40.0
#: Thesis, 7.1.2: "90% of load estimations having a mean average percentage error of less than 11%".
SMALL_ERROR = 0.11
METRICS = {"input": "input", "output": "output", "match": "matching"}
#: Loads below it are those of idle brokers: a relative error says nothing.
LOADED = 0.02


@dataclass(frozen=True, slots=True)
class BalancingSession:
    id: str
    offloader: str
    acceptor: str
    metric: str
    began_s: float
    ended_s: float
    difference: float
    """Between the two brokers, as detected."""

    overloaded: bool
    moved: int
    failed: bool
    estimated: tuple[float, float] | None
    """The difference before and after, as estimated; None if nothing was planned."""

    @property
    def is_moving(self) -> bool:
        return self.moved > 0


def sessions_of(decisions: Iterable[Decided], until_s: float) -> list[BalancingSession]:
    """The sessions in the order in which they began; one that did not end ends with the run."""
    began: dict[str, Decided] = {}
    ended: dict[str, Decided] = {}
    for each in decisions:
        if each.action == "session":
            began[each.subject] = each
        elif each.action in ("ended", "gave up") and each.reason.get("side") == "offloader":
            ended[each.subject] = each
    return [_session(each, ended.get(id), until_s) for id, each in began.items()]


def _session(began: Decided, ended: Decided | None, until_s: float) -> BalancingSession:
    result = {} if ended is None else ended.reason
    estimated = None
    if "difference_before" in result:
        estimated = result["difference_before"], result["difference_after"]
    return BalancingSession(
        id=began.subject,
        offloader=began.source,
        acceptor=began.target,
        metric=began.reason["metric"],
        began_s=began.time_s,
        ended_s=until_s if ended is None else ended.time_s,
        difference=began.reason["difference"],
        overloaded=bool(began.reason["overloaded"]),
        moved=int(result.get("moved", 0)),
        failed=ended is None or ended.action == "gave up",
        estimated=estimated,
    )


def session_measures(decisions: Sequence[Decided], scene: Scene) -> dict[str, float]:
    sessions = sessions_of(decisions, scene.until_s)
    moving = [each for each in sessions if each.is_moving]
    before = [each for each in moving if each.began_s < scene.step_s]
    after = [each for each in moving if each.began_s >= scene.step_s]
    moved_s = [each.time_s for each in decisions if each.action == "moved"]
    slight = [each for each in moving if not each.overloaded and each.difference <= SLIGHT]
    return {
        "sessions": len(sessions),
        "sessions_moving": len(moving),
        "sessions_before": len(before),
        "sessions_after": len(after),
        "sessions_late": sum(
            start_s <= each.began_s < end_s
            for each in moving
            for start_s, end_s in {scene.late_before, scene.late_after}
        ),
        "sessions_unprovoked": sum(not each.overloaded for each in sessions),
        "moves": len(moved_s),
        "moves_before": sum(at_s < scene.step_s for at_s in moved_s),
        "moves_after": sum(at_s >= scene.step_s for at_s in moved_s),
        "session_moves_mean": _mean(each.moved for each in moving),
        "session_moves_max": max((each.moved for each in moving), default=0),
        "slight_sessions": len(slight),
        "slight_moves_mean": _mean(each.moved for each in slight),
        "slight_moves_max": max((each.moved for each in slight), default=0),
        "slight_output_moves_max": max(
            (each.moved for each in slight if each.metric == "output"), default=0
        ),
        "session_s_mean": _mean(each.ended_s - each.began_s for each in moving),
        "first_moved_s": min(moved_s, default=scene.until_s),
        "converged_s": converged_s(sessions, scene),
        "reconverged_s": max((each.ended_s - scene.step_s for each in after), default=0.0),
        "not_improving": sum(not _improves(each) for each in moving),
        "gave_up": sum(each.failed for each in sessions),
        "followed_share": followed_share(moving),
        **error_measures(decisions, sessions, scene),
    }


def converged_s(sessions: Iterable[BalancingSession], scene: Scene) -> float:
    """The end of the last moving session that began before the step; 0 without any."""
    return max(
        (each.ended_s for each in sessions if each.is_moving and each.began_s < scene.step_s),
        default=0.0,
    )


def _improves(session: BalancingSession) -> bool:
    if session.estimated is None:
        return False
    before, after = session.estimated
    return abs(after) < abs(before)


def followed_share(moving: Sequence[BalancingSession]) -> float:
    followed = 0
    for number, session in enumerate(moving):
        pair = {session.offloader, session.acceptor}
        followed += any(
            {later.offloader, later.acceptor} == pair
            and later.metric == session.metric
            and later.began_s - session.ended_s <= FOLLOWS_WITHIN_S
            for later in moving[number + 1 :]
        )
    return followed / len(moving) if moving else 0.0


# -- predicted against achieved ------------------------------------------------------------------


def error_measures(
    decisions: Iterable[Decided], sessions: Iterable[BalancingSession], scene: Scene
) -> dict[str, float]:
    known = {each.id: each for each in sessions}
    # After that no client publishes: loads fall, whatever a session did.
    outcomes = [
        each for each in decisions if each.action == "achieved" and each.time_s <= scene.until_s
    ]
    quiet = [each for each in outcomes if _is_quiet(each, known, scene)]
    values: dict[str, float] = {"outcomes": len(outcomes), "outcomes_quiet": len(quiet)}
    for name, some in (("", outcomes), ("quiet_", quiet)):
        for metric, called in METRICS.items():
            values[f"{name}error_{called}"] = _mean(_errors(some, metric))
        every = [error for metric in METRICS for error in _errors(some, metric)]
        small = sum(error < SMALL_ERROR for error in every)
        values[f"{name}error_small_share"] = small / len(every) if every else 0.0
    return values


def _is_quiet(outcome: Decided, known: Mapping[str, BalancingSession], scene: Scene) -> bool:
    session = known.get(outcome.reason["session"])
    if session is None or session.overloaded or scene.joins != "one":
        return False
    from_s = session.began_s - AVERAGED_S
    has_step = from_s <= scene.step_s <= outcome.time_s
    return from_s >= scene.joined_s and not has_step


def _errors(outcomes: Iterable[Decided], metric: str) -> list[float]:
    """Relative errors of one metric; without brokers that are idle in that metric."""
    return [
        each.reason[f"{metric}_error"]
        for each in outcomes
        if each.reason[f"{metric}_achieved"] > (0.0 if metric == "match" else LOADED)
    ]


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return mean(found) if found else 0.0
