"""The lifecycle of an admitted pod and its containers, as a state machine over time.

`loop` advances a pod when one of its containers is due and writes the status that `podstatus` derives. Init containers
run in order, sidecars keep running, and app containers start together; the restart policy decides about restarts. The
container runtime acts at its own times; the kubelet acts when it runs, so a restarted kubelet catches up. Restarts
follow the kubelet's CrashLoopBackOff: at once the first time, then 10 s, doubled up to 5 min, and reset after 10 min of
running."""

from typing import Final, Literal

from msgspec import Struct

from numalign.api.objects.pod import Container, Pod
from numalign.kube.backoff import Exponential
from numalign.kubelet.demand import Role, identity
from numalign.simulator.nodes.workloads import ContainerBehaviour, Workload

BACKOFF: Final = Exponential(first=10.0, longest=300.0)
FORGOTTEN_AFTER: Final = 600.0

KILLED: Final = 137
STOPPED: Final = 143
LOST: Final = 255
"""Exit codes: killed after the grace period, terminated on request, lost with the machine."""


class ContainerExit(Struct, frozen=True):
    """How a container ended. `began` is None if it never ran."""

    began: float | None
    finished: float
    exit_code: int
    reason: str
    message: str = ""


class ContainerRun:
    __slots__ = ("_crashes", "_run", "began", "container", "ended", "last", "retry", "role", "starts")

    def __init__(self, container: Container, role: Role) -> None:
        self.container = container
        self.role = role
        self.starts = 0
        self.began: float | None = None
        """When it started; None while it does not run."""
        self.ended: ContainerExit | None = None
        """How it ended; None after a restart."""
        self.last: ContainerExit | None = None
        """How it ended before the last restart."""
        self.retry = 0.0
        """The earliest time of the next start."""
        self._run = ContainerBehaviour()
        self._crashes = 0

    @property
    def name(self) -> str:
        return self.container.name

    @property
    def running(self) -> bool:
        return self.began is not None

    @property
    def due(self) -> float | None:
        """When it exits by itself."""
        if self.began is None or self._run.seconds is None:
            return None
        return self.began + self._run.seconds

    def start(self, now: float, run: ContainerBehaviour) -> None:
        self.last, self.ended = self.ended or self.last, None
        self.began, self._run = now, run
        self.starts += 1

    def exit(self) -> None:
        """Exits by itself, at the time of `due`."""
        if self.due is not None:
            reason = "Completed" if self._run.exit_code == 0 else "Error"
            why = self._run.message
            self.finish(
                ContainerExit(self.began, self.due, self._run.exit_code, "ContainerCannotRun" if why else reason, why)
            )

    def finish(self, how: ContainerExit) -> None:
        if how.began is not None and how.finished - how.began > FORGOTTEN_AFTER:
            self._crashes = 0
        self.retry = how.finished + BACKOFF.pause(self._crashes)
        self._crashes += 1
        self.ended, self.began = how, None

    def reset(self) -> None:
        """Starts again without back-off, in a new sandbox."""
        self.last, self.ended = self.ended or self.last, None

    def waits_for_retry(self, now: float) -> bool:
        return self.ended is not None and self.retry > now


Phase = Literal["Pending", "Running", "Succeeded", "Failed"]

NEVER_RAN: Final = "ContainerStatusUnknown"
NEVER_RAN_MESSAGE: Final = "The container could not be located when the pod was terminated"


class PhaseChange(Struct, frozen=True):
    what: Literal["started", "ended"]
    container: str


class PodLife:
    """An admitted pod. `ready_at` is when its sandbox is ready."""

    __slots__ = ("_workload", "apps", "ended", "init", "pod", "ready_at", "sandbox", "stop_at", "stop_code", "uid")

    def __init__(self, pod: Pod, ready_at: float, workload: Workload) -> None:
        self.pod = pod
        self.uid = identity(pod)
        self.ready_at = ready_at
        self.sandbox = False
        self.stop_at: float | None = None
        self.stop_code = STOPPED
        self.ended = False
        """Whether no container runs or will run, so that the pod's resources are free."""
        self._workload = workload
        self.init = [ContainerRun(each, _role(each)) for each in pod.spec.init_containers]
        self.apps = [ContainerRun(each, Role.APP) for each in pod.spec.containers]

    @property
    def containers(self) -> list[ContainerRun]:
        return self.init + self.apps

    @property
    def stopping(self) -> bool:
        return self.stop_at is not None

    def stop(self, at: float, *, killed: bool) -> None:
        """Ends all containers at this time, unless an earlier time is set."""
        if self.stop_at is None or at < self.stop_at:
            self.stop_at, self.stop_code = at, KILLED if killed else STOPPED

    def reboot(self, now: float, ready_at: float) -> None:
        """The machine rebooted: the pod starts again in a new sandbox, if its restart policy allows."""
        for each in self.containers:
            if each.running:
                each.finish(ContainerExit(each.began, now, LOST, "Unknown"))
        if self.pod.spec.restart_policy == "Never":
            self._end(now)
            return
        self.sandbox, self.ready_at = False, ready_at
        for each in self.containers:
            if each.role is not Role.APP or self.restarts(each):
                each.reset()

    def advance(self, now: float) -> list[PhaseChange]:
        """Applies everything that happened until now, and then the kubelet's reactions."""
        changes: list[PhaseChange] = []
        while not self.ended:
            before = len(changes)
            self._exits(now, changes)
            if self.stop_at is not None:
                self._stopped(now, changes)
            elif now >= self.ready_at:
                self.sandbox = True
                self._drive(now, changes)
            if len(changes) == before:
                break
        return changes

    def due(self) -> float | None:
        """When to advance the pod next; None if it does not change by itself."""
        if self.ended:
            return None
        moments = [each.due for each in self.containers if each.due is not None]
        if self.stop_at is not None:
            moments.append(self.stop_at)
        elif not self.sandbox:
            moments.append(self.ready_at)
        else:
            moments += [each.retry for each in self.containers if each.ended and self.restarts(each)]
        return min(moments, default=None)

    @property
    def phase(self) -> Phase:
        """The pod's phase, as the kubelet derives it from its containers."""
        inits = [each for each in self.init if each.role is Role.INIT]
        if self.ended or any(_failed(each) and not self.restarts(each) for each in inits):
            return "Succeeded" if all(each.ended and not _failed(each) for each in self.apps + inits) else "Failed"
        if not all(each.ended and not _failed(each) for each in inits):
            return "Pending"
        return "Pending" if any(each.starts == 0 for each in self.containers) else "Running"

    def _exits(self, now: float, changes: list[PhaseChange]) -> None:
        for each in self.containers:
            if each.due is not None and each.due <= now:
                each.exit()
                changes.append(PhaseChange("ended", each.name))

    def _stopped(self, now: float, changes: list[PhaseChange]) -> None:
        """Ends the pod at its stop time, or earlier if none of its containers runs."""
        if self.stop_at is not None and (self.stop_at <= now or not any(each.running for each in self.containers)):
            self._end(min(now, self.stop_at), changes)

    def _drive(self, now: float, changes: list[PhaseChange]) -> None:
        if not self._initialised(now, changes):
            return
        for each in self.apps:
            self._start(each, now, changes)
        if all(each.ended and not self.restarts(each) for each in self.apps):
            self._end(now, changes)

    def _initialised(self, now: float, changes: list[PhaseChange]) -> bool:
        """Whether app containers may start. The first init container that is not done blocks the others."""
        for each in self.init:
            self._start(each, now, changes)
            if each.role is Role.SIDECAR or (each.ended and not _failed(each)):
                continue
            if each.ended and not self.restarts(each):
                self._end(now, changes)
            return False
        return True

    def _start(self, each: ContainerRun, now: float, changes: list[PhaseChange]) -> None:
        if each.running or (each.ended and (not self.restarts(each) or each.waits_for_retry(now))):
            return
        each.start(now, self._workload(self.pod, each.container, each.starts))
        changes.append(PhaseChange("started", each.name))

    def restarts(self, each: ContainerRun) -> bool:
        """Whether the restart policy restarts an ended container."""
        if each.role is Role.SIDECAR:
            return True
        policy = self.pod.spec.restart_policy
        if each.role is Role.APP and policy == "Always":
            return True
        return policy != "Never" and _failed(each)

    def _end(self, now: float, changes: list[PhaseChange] | None = None) -> None:
        for each in self.containers:
            if each.running:
                each.finish(ContainerExit(each.began, now, self.stop_code, "Error"))
                if changes is not None:
                    changes.append(PhaseChange("ended", each.name))
            elif each.ended is None and each.role is Role.APP:
                each.finish(ContainerExit(None, now, KILLED, NEVER_RAN, NEVER_RAN_MESSAGE))
        self.ended = True


def _role(container: Container) -> Role:
    return Role.SIDECAR if container.is_sidecar else Role.INIT


def _failed(each: ContainerRun) -> bool:
    return each.ended is not None and each.ended.exit_code != 0
