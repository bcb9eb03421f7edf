"""SPG507 on scores of Ignite by which engines stop."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_scores_that_each_rank_makes_of_its_own_batches() -> None:
    """A mean of the outputs, an entry of the metrics set by hand, a score function with a name, a field set at once."""
    assert agree(
        """
        import ignite.distributed as idist
        from ignite.engine import Engine, Events
        from ignite.handlers import EarlyStopping
        from ignite import handlers

        def evaluator_of(model):
            evaluator = Engine(lambda engine, batch: model(batch))

            @evaluator.on(Events.STARTED)
            def reset(engine):
                engine.state.sum, engine.state.seen = 0.0, 0

            @evaluator.on(Events.ITERATION_COMPLETED)
            def add(engine):
                engine.state.total += engine.state.output.item()
                engine.state.seen += 1

            @evaluator.on(Events.COMPLETED)
            def finish(engine):
                engine.state.mean = engine.state.total / engine.state.seen
                engine.state.metrics["own"] = engine.state.total

            return evaluator

        def last(engine):
            loss = engine.state.output.item()
            engine.state.last = loss

        def score(engine):
            return -engine.state.last

        def train(net, trainer, evaluator):
            model = idist.auto_model(net)
            first = EarlyStopping(3, lambda engine: -engine.state.mean, trainer)  # SPG507
            second = EarlyStopping(  # SPG507
                patience=3, score_function=lambda e: -e.state.metrics["own"], trainer=trainer
            )
            third = handlers.EarlyStopping(3, score, trainer)  # SPG507
            for stopper in (first, second, third):
                evaluator.add_event_handler(Events.COMPLETED, stopper)
        """,
        "SPG507",
    )


def test_scores_that_all_ranks_have() -> None:
    """Reduced by hand, a metric of Ignite, the number of the epoch, and what nothing is known of."""
    assert agree(
        """
        import ignite.distributed as idist
        from ignite.engine import Engine, Events
        from ignite.handlers import EarlyStopping
        from ignite.metrics import Loss

        def add(engine):
            engine.state.total += engine.state.output.item()

        def finish(engine):
            engine.state.mean = idist.all_reduce(engine.state.total)

        def late(engine):
            engine.state.round = engine.state.epoch // 2

        def train(net, trainer, evaluator, loss):
            model = idist.auto_model(net)
            Loss(loss).attach(evaluator, "loss")
            first = EarlyStopping(3, lambda engine: -engine.state.mean, trainer)
            second = EarlyStopping(3, lambda engine: -engine.state.metrics["loss"], trainer)
            third = EarlyStopping(3, lambda engine: -engine.state.round, trainer)
            fourth = EarlyStopping(3, lambda engine: engine.score(), trainer)
        """,
        "SPG507",
    )


def test_one_process_stops_as_it_likes() -> None:
    """A program without a group."""
    assert agree(
        """
        from ignite.handlers import EarlyStopping

        def last(engine):
            engine.state.last = engine.state.output.item()

        def train(trainer):
            return EarlyStopping(3, lambda engine: -engine.state.last, trainer)
        """,
        "SPG507",
    )
