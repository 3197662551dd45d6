"""Callbacks that record, stop or fail."""

MAX_ITER = 5  # of `helpers.estimators.ours`


class Recorder:
    """Keep what every hook gets; subclasses stop, fail, or request less."""

    def __init__(self):
        self.events = []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(
        self, estimator, context, *, X, y, metadata, fitted_estimator
    ):
        self.events.append(("begin", context, X, y, metadata, fitted_estimator))

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        self.events.append(("end", context, X, y, metadata, fitted_estimator))

    def of(self, event, task_name):
        """The arguments of the hooks of one sort: context, X, y, metadata, fitted."""
        return [
            arguments
            for kind, *arguments in (e for e in self.events if isinstance(e, tuple))
            if kind == event and arguments[0].task_name == task_name
        ]

    @property
    def fitted(self):
        return [arguments[-1] for arguments in self.of("end", "iteration")]


class Propagated(Recorder):
    max_propagation_depth = None


class Hook:
    """Do something at the end of each iteration, and request nothing."""

    def __init__(self, hook):
        self.hook = hook
        self.ended = []
        self.torn_down = False

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        self.torn_down = True

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        self.ended.append(context.task_name)
        if context.task_name == "iteration":
            return self.hook(estimator)


def logged(monitor, name, task_name="iteration"):
    data = monitor.get_logs().data
    return [row[name] for row in data if row["task_name"] == task_name]
