"""Facts on rank-local operations that may fail on one rank alone: files, network, trackers, storage."""

from __future__ import annotations

from .build import PURE, local, varying
from .fact import Fact, TypeFacts

_SEEN = varying("filesystem", event="seen")
_LISTED = varying("filesystem", raises_local=True, event="read")
_LISTING = varying("filesystem", raises_local=True, event="list")
_WALKED = varying("filesystem", event="list")
_READ = local("read")  # of one file all ranks read the same
_WRITE = local("write")
_MKDIR = local("mkdir")
_RENAME = local("rename")
_REMOVE = local("remove")
_COPY = local("write")
_NETWORK = local("network")
_DOWNLOAD = local("download")
_UPLOAD = local("upload")
_TRACKER_START = local("tracker-start")
_TRACKER_LOG = local("tracker-log")
_TRACKER_END = local("tracker-end")
PATH = "pathlib.Path"
PICTURE = "PIL.Image.Image"
FILE = "io.TextIOWrapper"
_PATH_RESULT = Fact(returns=PATH)
_SAME_PATH = Fact(result="receiver", returns=PATH)

FUNCTIONS: dict[str, Fact] = {
    "open": local("open", returns=FILE),
    "io.open": local("open", returns=FILE),
    "codecs.open": local("open", returns=FILE),
    "gzip.open": local("open", returns=FILE),
    "bz2.open": local("open", returns=FILE),
    "lzma.open": local("open", returns=FILE),
    "os.open": local("open"),
    "os.fdopen": local("open", returns=FILE),
    "os.write": _WRITE,
    "os.fsync": _WRITE,
    # what this rank sees on its disk
    "os.path.exists": _SEEN,
    "os.path.lexists": _SEEN,
    "os.path.isfile": _SEEN,
    "os.path.isdir": _SEEN,
    "os.path.islink": _SEEN,
    "os.path.getsize": _LISTED,
    "os.path.getmtime": _LISTED,
    "os.access": varying("filesystem"),
    "os.stat": _LISTED,
    "os.listdir": _LISTING,
    "os.scandir": _WALKED,
    "os.walk": _WALKED,
    "glob.glob": _WALKED,
    "glob.iglob": _WALKED,
    "shutil.disk_usage": varying("filesystem"),
    "shutil.which": varying("filesystem"),
    "os.path.join": PURE,
    # changes
    "os.mkdir": _MKDIR,
    "os.makedirs": _MKDIR,
    "os.rename": _RENAME,
    "os.renames": _RENAME,
    "os.replace": _RENAME,
    "os.remove": _REMOVE,
    "os.unlink": _REMOVE,
    "os.rmdir": _REMOVE,
    "os.removedirs": _REMOVE,
    "os.symlink": _WRITE,
    "os.link": _WRITE,
    "os.chmod": _WRITE,
    "os.utime": _WRITE,
    "os.truncate": _WRITE,
    "os.chdir": local("chdir"),
    "shutil.copy": _COPY,
    "shutil.copy2": _COPY,
    "shutil.copyfile": _COPY,
    "shutil.copytree": _COPY,
    "shutil.move": _RENAME,
    "shutil.rmtree": _REMOVE,
    "shutil.make_archive": _WRITE,
    "shutil.unpack_archive": _WRITE,
    "tempfile.mkdtemp": varying("filesystem", raises_local=True, event="mkdir"),
    "tempfile.mkstemp": varying("filesystem", raises_local=True, event="write"),
    "tempfile.gettempdir": Fact(result="uniform", certainty="likely"),
    "tempfile.TemporaryDirectory": varying("filesystem", raises_local=True, event="mkdir", wraps="context"),
    "tempfile.NamedTemporaryFile": varying(
        "filesystem", raises_local=True, event="write", wraps="context", returns=FILE
    ),
    "tarfile.open": local("open"),
    "zipfile.ZipFile": local("open"),
    "sqlite3.connect": local("open"),
    "json.dump": _WRITE,
    "json.load": _READ,
    "pickle.dump": _WRITE,
    "pickle.load": _READ,
    "yaml.dump": PURE,
    "yaml.safe_load": PURE,
    "csv.writer": PURE,
    "joblib.dump": _WRITE,
    "joblib.load": _READ,
    "onnx.save": _WRITE,
    "onnx.save_model": _WRITE,
    "onnx.load": _READ,
    "numpy.save": _WRITE,
    "numpy.savez": _WRITE,
    "numpy.savez_compressed": _WRITE,
    "numpy.savetxt": _WRITE,
    "numpy.load": _READ,
    "numpy.loadtxt": _READ,
    "pandas.read_csv": _READ,
    "pandas.read_json": _READ,
    "pandas.read_parquet": _READ,
    "pandas.read_pickle": _READ,
    "pandas.read_feather": _READ,
    "polars.read_csv": _READ,
    "polars.read_parquet": _READ,
    "polars.scan_parquet": _READ,
    "pyarrow.parquet.write_table": _WRITE,
    "pyarrow.parquet.read_table": _READ,
    "PIL.Image.open": _READ,
    "PIL.Image.fromarray": Fact(returns=PICTURE),
    "PIL.Image.new": Fact(returns=PICTURE),
    "imageio.imwrite": _WRITE,
    "imageio.mimsave": _WRITE,
    "cv2.imwrite": _WRITE,
    "matplotlib.pyplot.savefig": _WRITE,
    "torchaudio.save": _WRITE,
    "omegaconf.OmegaConf.save": _WRITE,
    "omegaconf.OmegaConf.load": _READ,
    # network
    "urllib.request.urlopen": _NETWORK,
    "urllib.request.urlretrieve": _DOWNLOAD,
    "boto3.client": local(returns="boto3.client"),
    "boto3.resource": local(returns="boto3.client"),
    "fsspec.open": local("open", returns=FILE),
    "fsspec.filesystem": Fact(returns="fsspec.AbstractFileSystem"),
    "smtplib.SMTP": local("network"),
    "gdown.download": _DOWNLOAD,
    "wget.download": _DOWNLOAD,
    "huggingface_hub.Repository": local("upload", returns="huggingface_hub.HfApi"),  # clones, or makes it
    "datasets.load_dataset": local("download"),
    "datasets.load_from_disk": _READ,
    "datasets.Dataset.load_from_disk": _READ,
    "datasets.DatasetDict.load_from_disk": _READ,
    "datasets.Dataset.from_parquet": _READ,
    "datasets.Dataset.from_csv": _READ,
    # trackers
    "wandb.init": local("tracker-start", returns="wandb.Run"),
    "wandb.login": local("network"),
    "wandb.finish": _TRACKER_END,
    "wandb.log": _TRACKER_LOG,
    "wandb.Table": PURE,
    "wandb.Image": PURE,
    "wandb.Histogram": PURE,
    "wandb.Settings": PURE,
    "mlflow.start_run": local("tracker-start", wraps="context", returns="mlflow.ActiveRun"),
    "mlflow.end_run": _TRACKER_END,
    "mlflow.tracking.MlflowClient": Fact(returns="mlflow.MlflowClient"),
    "clearml.Task.init": local("tracker-start", returns="clearml.Task"),
    "comet_ml.Experiment": local("tracker-start", returns="wandb.Run"),
    "comet_ml.start": local("tracker-start", returns="wandb.Run"),
    "neptune.init_run": local("tracker-start", returns="wandb.Run"),
    "aim.Run": local("tracker-start", returns="wandb.Run"),
    "swanlab.init": local("tracker-start", returns="wandb.Run"),
    "swanlab.finish": _TRACKER_END,
    "trackio.init": local("tracker-start", returns="wandb.Run"),
    "trackio.finish": _TRACKER_END,
}

PREFIX_FACTS: tuple[tuple[str, Fact], ...] = (
    ("mlflow.", _TRACKER_LOG),
    ("wandb.", _TRACKER_LOG),
    ("trackio.", _TRACKER_LOG),
    ("swanlab.", _TRACKER_LOG),
    ("requests.", _NETWORK),
    ("httpx.", _NETWORK),
    ("huggingface_hub.", _UPLOAD),
    ("google.cloud.storage.", _NETWORK),
)

_STREAM = TypeFacts(
    methods={
        "write": _WRITE,
        "writelines": _WRITE,
        "read": _READ,
        "readline": _READ,
        "readlines": _READ,
        "flush": _WRITE,
        "close": _WRITE,
        "truncate": _WRITE,
    },
)

TYPES: dict[str, TypeFacts] = {
    FILE: _STREAM,
    PATH: TypeFacts(
        methods={
            "exists": _SEEN,
            "is_file": _SEEN,
            "is_dir": _SEEN,
            "is_symlink": _SEEN,
            "glob": varying("filesystem", event="list"),
            "rglob": varying("filesystem", event="list"),
            "iterdir": varying("filesystem", event="list", raises_local=True),
            "stat": _LISTED,
            "read_text": _READ,
            "read_bytes": _READ,
            "write_text": _WRITE,
            "write_bytes": _WRITE,
            "touch": _WRITE,
            "symlink_to": _WRITE,
            "hardlink_to": _WRITE,
            "chmod": _WRITE,
            "open": local("open", returns=FILE),
            "mkdir": _MKDIR,
            "rename": local("rename", returns=PATH),
            "replace": local("rename", returns=PATH),
            "unlink": _REMOVE,
            "rmdir": _REMOVE,
            "joinpath": _PATH_RESULT,
            "with_suffix": _PATH_RESULT,
            "with_name": _PATH_RESULT,
            "with_stem": _PATH_RESULT,
            "resolve": _SAME_PATH,
            "absolute": _SAME_PATH,
            "expanduser": _SAME_PATH,
            "relative_to": _PATH_RESULT,
            "cwd": _PATH_RESULT,
            "home": _PATH_RESULT,
        },
        attributes={"parent": _PATH_RESULT, "name": PURE, "stem": PURE, "suffix": PURE},
    ),
    PICTURE: TypeFacts(methods={"save": _WRITE}),
    "wandb.Run": TypeFacts(methods={"finish": _TRACKER_END, "end": _TRACKER_END}, other=_TRACKER_LOG),
    "mlflow.ActiveRun": TypeFacts(attributes={"info": PURE}),
    "mlflow.MlflowClient": TypeFacts(
        methods={"set_terminated": _TRACKER_END, "create_run": _TRACKER_START}, other=_TRACKER_LOG
    ),
    "clearml.Task": TypeFacts(methods={"close": _TRACKER_END}, other=_TRACKER_LOG),
    "boto3.client": TypeFacts(other=_NETWORK),
    "fsspec.AbstractFileSystem": TypeFacts(methods={"exists": _SEEN, "ls": _LISTED}, other=_WRITE),
    "requests.Session": TypeFacts(other=_NETWORK),
    "huggingface_hub.HfApi": TypeFacts(other=_UPLOAD),
    "zipfile.ZipFile": TypeFacts(other=_WRITE),
    "tarfile.TarFile": TypeFacts(other=_WRITE),
}

ALIASES: dict[str, str] = {
    "pathlib.PosixPath": PATH,
    "pathlib.PurePath": PATH,
    "wandb.sdk.wandb_run.Run": "wandb.Run",
    "wandb.run": "wandb.Run",
    "mlflow.client.MlflowClient": "mlflow.MlflowClient",
    "huggingface_hub.hf_api.HfApi": "huggingface_hub.HfApi",
}
