"""Facts on the standard library that decide where ranks part ways: exits, clocks, random numbers, threads."""

from __future__ import annotations

from .build import PURE, local, varying
from .fact import Arg, Fact, TypeFacts

_CLOCK = varying("time")
_ENVIRONMENT = varying("environment")
_RANDOM = varying("random", event="draw-random")
_NUMPY = varying("random", event="draw-numpy")
_EXIT = Fact(noreturn=True, event="exit")
_HARD_EXIT = Fact(noreturn=True, event="hard-exit")
_THREAD = Fact(wraps="call", event="thread-run")
_SUBMIT = Fact(wraps="call", event="thread-run", returns="concurrent.futures.Future")
_EXECUTOR = "concurrent.futures.Executor"
_OS_RANDOM = varying("random")
_DRAW_OBJECT = Fact(event="draw-object")
_SUBPROCESS = local("subprocess", result="varying", varying="environment")

FUNCTIONS: dict[str, Fact] = {
    # leaving
    "sys.exit": _EXIT,
    "exit": _EXIT,
    "quit": _EXIT,
    "os._exit": _HARD_EXIT,
    "os.abort": _HARD_EXIT,
    "os.kill": Fact(event="kill"),
    "os.killpg": Fact(event="kill"),
    # clocks
    "time.time": _CLOCK,
    "time.time_ns": _CLOCK,
    "time.monotonic": _CLOCK,
    "time.monotonic_ns": _CLOCK,
    "time.perf_counter": _CLOCK,
    "time.perf_counter_ns": _CLOCK,
    "time.process_time": _CLOCK,
    "time.thread_time": _CLOCK,
    "time.strftime": _CLOCK,
    "time.ctime": _CLOCK,
    "time.localtime": _CLOCK,
    "time.gmtime": _CLOCK,
    "time.sleep": Fact(event="sleep"),
    "timeit.default_timer": _CLOCK,
    "datetime.datetime.now": _CLOCK,
    "datetime.datetime.utcnow": _CLOCK,
    "datetime.datetime.today": _CLOCK,
    "datetime.date.today": _CLOCK,
    "asyncio.sleep": Fact(event="sleep"),
    # this host, this process
    "socket.gethostname": _ENVIRONMENT,
    "socket.getfqdn": _ENVIRONMENT,
    "socket.socket": local(),
    "socket.create_connection": local("network"),
    "os.getpid": _ENVIRONMENT,
    "os.getppid": _ENVIRONMENT,
    "os.uname": _ENVIRONMENT,
    "os.cpu_count": varying("environment", certainty="possible"),
    "os.getloadavg": _ENVIRONMENT,
    "os.sched_getaffinity": _ENVIRONMENT,
    "platform.node": _ENVIRONMENT,
    "threading.get_ident": _ENVIRONMENT,
    "threading.get_native_id": _ENVIRONMENT,
    "multiprocessing.current_process": _ENVIRONMENT,
    "psutil.virtual_memory": varying("data", event="memory"),
    "psutil.cpu_percent": varying("data", event="memory"),
    "psutil.disk_usage": varying("filesystem"),
    "psutil.Process": _ENVIRONMENT,
    "resource.getrusage": varying("data", event="memory"),
    "gc.collect": PURE,
    "id": _ENVIRONMENT,
    "hash": varying("environment", certainty="likely"),  # texts are salted in each process
    # random numbers
    "random.random": _RANDOM,
    "random.randint": _RANDOM,
    "random.randrange": _RANDOM,
    "random.choice": _RANDOM,
    "random.choices": _RANDOM,
    "random.sample": _RANDOM,
    "random.uniform": _RANDOM,
    "random.gauss": _RANDOM,
    "random.normalvariate": _RANDOM,
    "random.betavariate": _RANDOM,
    "random.expovariate": _RANDOM,
    "random.triangular": _RANDOM,
    "random.getrandbits": _RANDOM,
    "random.getstate": _RANDOM,
    "random.shuffle": varying("random", event="draw-random", outputs=(Arg(0, "x"),)),
    "random.seed": Fact(event="seed-random", result="uniform"),
    "random.setstate": Fact(event="seed-random", result="uniform"),
    "random.Random": varying("random", unless=Arg(0, "x"), returns="random.Random"),
    "random.SystemRandom": varying("random", event="draw-object"),
    "numpy.random.rand": _NUMPY,
    "numpy.random.randn": _NUMPY,
    "numpy.random.random": _NUMPY,
    "numpy.random.random_sample": _NUMPY,
    "numpy.random.randint": _NUMPY,
    "numpy.random.choice": _NUMPY,
    "numpy.random.permutation": _NUMPY,
    "numpy.random.uniform": _NUMPY,
    "numpy.random.normal": _NUMPY,
    "numpy.random.beta": _NUMPY,
    "numpy.random.binomial": _NUMPY,
    "numpy.random.get_state": _NUMPY,
    "numpy.random.shuffle": varying("random", event="draw-numpy", outputs=(Arg(0, "x"),)),
    "numpy.random.seed": Fact(event="seed-numpy", result="uniform"),
    "numpy.random.set_state": Fact(event="seed-numpy", result="uniform"),
    "numpy.random.default_rng": varying("random", unless=Arg(0, "seed"), returns="numpy.random.Generator"),
    "numpy.random.RandomState": varying("random", unless=Arg(0, "seed"), returns="numpy.random.Generator"),
    "os.urandom": _OS_RANDOM,
    "uuid.uuid1": _OS_RANDOM,
    "uuid.uuid4": _OS_RANDOM,
    "secrets.token_hex": _OS_RANDOM,
    "secrets.token_bytes": _OS_RANDOM,
    "secrets.token_urlsafe": _OS_RANDOM,
    "secrets.randbelow": _OS_RANDOM,
    "secrets.randbits": _OS_RANDOM,
    "secrets.choice": _OS_RANDOM,
    # signals and exit handlers
    "signal.signal": Fact(wraps="handler", event="signal-handler", callee=Arg(1, "handler")),
    "signal.alarm": Fact(event="signal-alarm"),
    "signal.setitimer": Fact(event="signal-alarm"),
    "atexit.register": Fact(wraps="handler", event="exit-handler"),
    "weakref.finalize": Fact(wraps="handler", event="exit-handler", callee=Arg(1, "func")),
    "sys.setrecursionlimit": PURE,
    # context managers and decorators
    "contextlib.suppress": Fact(wraps="context", suppresses=True),
    "loguru.logger.catch": Fact(wraps="context", suppresses=True),
    "contextlib.nullcontext": Fact(wraps="context", result="arg0"),
    "contextlib.closing": Fact(wraps="context", result="arg0"),
    "contextlib.redirect_stdout": Fact(wraps="context"),
    "contextlib.contextmanager": Fact(wraps="decorator", event="contextmanager"),
    "contextlib.asynccontextmanager": Fact(wraps="decorator", event="contextmanager"),
    "functools.wraps": Fact(wraps="decorator", event="wraps"),
    "functools.partial": Fact(event="partial"),
    "functools.partialmethod": Fact(event="partial"),
    "functools.lru_cache": Fact(wraps="decorator"),
    "functools.cache": Fact(wraps="decorator"),
    "functools.cached_property": Fact(wraps="decorator", event="property"),
    "functools.singledispatch": Fact(wraps="decorator"),
    "property": Fact(wraps="decorator", event="property"),
    "staticmethod": Fact(wraps="decorator", event="staticmethod"),
    "classmethod": Fact(wraps="decorator", event="classmethod"),
    # searches: they evaluate a function as often as its values ask for
    **{
        f"scipy.optimize.{name}": Fact(wraps="search", callee=Arg(0, keyword))
        for keyword, names in (
            (
                "fun",
                ("minimize", "minimize_scalar", "least_squares", "root", "dual_annealing", "basinhopping"),
            ),
            ("func", ("fmin", "fmin_bfgs", "fmin_cg", "fmin_l_bfgs_b", "newton", "brent", "curve_fit")),
            ("f", ("brentq", "bisect", "root_scalar", "line_search")),
        )
        for name in names
    },
    # threads and processes: another thread's collectives interleave with this one's
    "threading.Thread": Fact(
        wraps="thread", event="thread-run", returns="threading.Thread", callee=Arg(1, "target")
    ),
    "threading.Timer": Fact(
        wraps="thread", event="thread-run", returns="threading.Thread", callee=Arg(1, "function")
    ),
    "multiprocessing.Process": Fact(
        wraps="spawn", event="spawn", returns="threading.Thread", callee=Arg(1, "target")
    ),
    "asyncio.to_thread": _THREAD,
    "asyncio.run": Fact(result="arg0"),
    "asyncio.gather": PURE,
    "asyncio.wait": varying("order"),
    "asyncio.as_completed": varying("order"),
    "asyncio.Barrier": Fact(returns="threading.Barrier"),
    "concurrent.futures.as_completed": varying("order"),
    "concurrent.futures.wait": varying("order"),
    "subprocess.run": _SUBPROCESS,
    "subprocess.call": _SUBPROCESS,
    "subprocess.check_call": _SUBPROCESS,
    "subprocess.check_output": _SUBPROCESS,
    "subprocess.Popen": local("subprocess"),
    "subprocess.getoutput": _SUBPROCESS,
    "os.system": _SUBPROCESS,
    "os.popen": local("subprocess"),
    "os.fork": varying("environment", event="fork"),
}

_RNG = TypeFacts(
    other=_DRAW_OBJECT,
    methods={
        "seed": Fact(event="seed-generator"),
        "shuffle": varying("random", event="draw-object", outputs=(Arg(0, "x"),)),
    },
)
_POOL = TypeFacts(
    methods={
        "apply": _THREAD,
        "apply_async": _THREAD,
        "map": _THREAD,
        "map_async": _THREAD,
        "starmap": _THREAD,
        "imap": _THREAD,
        "imap_unordered": Fact(wraps="call", event="thread-run", result="varying", varying="order"),
    }
)

TYPES: dict[str, TypeFacts] = {
    "random.Random": _RNG,
    "numpy.random.Generator": _RNG,
    "threading.Thread": TypeFacts(
        methods={"start": Fact(event="thread-start"), "join": Fact(event="thread-join"), "run": PURE}
    ),
    "threading.Barrier": TypeFacts(methods={"wait": PURE, "reset": PURE, "abort": PURE}),
    "threading.Event": TypeFacts(
        methods={
            "is_set": varying("signal", certainty="likely"),
            "wait": varying("signal", certainty="likely"),
            "set": PURE,
            "clear": PURE,
        }
    ),
    "threading.Lock": TypeFacts(methods={"acquire": PURE, "release": PURE}),
    "multiprocessing.pool.Pool": _POOL,
    _EXECUTOR: TypeFacts(methods={"submit": _SUBMIT, "map": _THREAD, "shutdown": Fact(event="thread-join")}),
    "concurrent.futures.ThreadPoolExecutor": TypeFacts(bases=(_EXECUTOR,)),
    "concurrent.futures.ProcessPoolExecutor": TypeFacts(bases=(_EXECUTOR,)),
    "concurrent.futures.Future": TypeFacts(
        methods={
            "result": Fact(event="wait", raises_local=True),
            "exception": varying("exception", event="wait"),
            "done": varying("order"),
            "running": varying("order"),
            "add_done_callback": Fact(wraps="call", event="thread-run"),
        }
    ),
    "queue.Queue": TypeFacts(
        methods={
            "get": varying("order"),
            "get_nowait": varying("order"),
            "empty": varying("order"),
            "qsize": varying("order"),
            "put": PURE,
            "join": PURE,
        }
    ),
    "contextlib.ExitStack": TypeFacts(
        methods={
            "enter_context": Fact(result="arg0", event="enter-context"),
            "callback": Fact(wraps="handler", event="exit-stack-callback"),
            "push": Fact(result="arg0", event="exit-stack-push"),
            "enter_async_context": Fact(result="arg0", event="enter-context"),
            "push_async_callback": Fact(wraps="handler", event="exit-stack-callback"),
            "push_async_exit": Fact(result="arg0", event="exit-stack-push"),
            "close": PURE,
        }
    ),
    "datetime.datetime": TypeFacts(),
    "datetime.date": TypeFacts(),
}

ALIASES: dict[str, str] = {
    "multiprocessing.Barrier": "threading.Barrier",
    "multiprocessing.Event": "threading.Event",
    "multiprocessing.Queue": "queue.Queue",
    "multiprocessing.Pool": "multiprocessing.pool.Pool",
    "multiprocessing.pool.ThreadPool": "multiprocessing.pool.Pool",
    "multiprocessing.Lock": "threading.Lock",
    "threading.RLock": "threading.Lock",
    "asyncio.Event": "threading.Event",
    "queue.SimpleQueue": "queue.Queue",
    "concurrent.futures.thread.ThreadPoolExecutor": "concurrent.futures.ThreadPoolExecutor",
    "concurrent.futures.process.ProcessPoolExecutor": "concurrent.futures.ProcessPoolExecutor",
    "contextlib.AsyncExitStack": "contextlib.ExitStack",
}

PREFIXES: dict[str, str] = {
    "builtins.": "",
    "numpy.random.mtrand.": "numpy.random.",
}
