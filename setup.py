"""Packaging of mate_tf."""

import pathlib
import re

from setuptools import find_namespace_packages, setup

ROOT = pathlib.Path(__file__).parent
URL = "https://github.com/mate-tf/mate_tf"
# TensorFlow has no packages for Python 3.14 and for Intel Macs, where questions are answered all
# the same, and TensorFlow Text none for Windows either. The latter is needed for nothing but the
# signature `tables` of exported models, which tokenizes inside the graph, and by
# tf-models-official.
HAS_TENSORFLOW = (
    'python_version < "3.14" and (sys_platform != "darwin" or platform_machine != "x86_64")'
)
HAS_TEXT = f'{HAS_TENSORFLOW} and sys_platform != "win32"'

# Without lower bounds a resolver may take versions of years ago. Upper bounds stand where
# mate_tf/private_apis.py uses what a library does not promise to keep.
CORE = [
    "absl-py>=1.4",
    f"keras>=3.10,<3.16; {HAS_TENSORFLOW}",
    "narwhals>=1.20",
    "numpy>=1.26",
    # From 1.20 on for Python 3.13.
    "onnx>=1.16",
    "onnxruntime>=1.20",
    "rich>=13.7",
    "safetensors>=0.4.3",
    f"tensorflow>=2.20,<2.22; {HAS_TENSORFLOW}",
    f"tensorflow-text>=2.20,<2.22; {HAS_TEXT}",
]
EXTRAS = {
    "beam": ["apache-beam[tfrecord]>=2.70"],
    # Tables from HTML, Parquet and workbooks of Excel and OpenDocument.
    "formats": [
        "lxml>=5.3",
        "openpyxl>=3.1.3",
        "pyarrow>=18",
        "python-calamine>=0.3",
        "xlrd>=2.0.1",
    ],
    # TensorFlow's build with CUDA, of gigabytes. Builds that are packages of another name are no
    # extras: scripts/install_build.sh installs those for TPUs and for CPUs alone.
    "gpu": [f"tensorflow[and-cuda]>=2.20,<2.22; {HAS_TENSORFLOW}"],
    "hub": ["huggingface_hub>=0.30"],
    "mcp": ["mcp>=1.12"],
    "page": ["gradio>=6,<7"],
    # Sentences of linked passages, and columns chosen by the words of the question.
    "passages": ["nltk>=3.9"],
    "plots": ["matplotlib>=3.9.2"],
    # The tables most like a question, of many.
    "search": ["bm25s>=0.2.6"],
    "serve": [
        "fastapi>=0.115",
        "h11>=0.16",
        "prometheus_client>=0.20",
        "pydantic>=2.8",
        "uvicorn>=0.30",
    ],
    "spacy": ["spacy>=3.8"],
    "textblob": ["textblob>=0.18"],
    "train": [
        # Their own requirements agree in these versions.
        f"tensorflow~=2.20.0; {HAS_TENSORFLOW}",
        f"tensorflow-text~=2.20.0; {HAS_TEXT}",
        f"tf-models-official~=2.20.0; {HAS_TEXT}",
        # tensorflow_hub, which tf-models-official imports, needs pkg_resources at run time;
        # setuptools 82 no longer has it.
        "setuptools>=70,<82",
    ],
    "test": [
        "axe-playwright-python>=0.1.4",
        "httpx>=0.27",
        "hypothesis>=6.112",
        "pandas>=2.2.3",
        "playwright>=1.48",
        "polars>=1.10",
        "pytest>=8",
        "pytest-xdist>=3.6",
        "scikit-learn>=1.5.2",
        "scipy>=1.14.1",
        "uv>=0.5",
    ],
    "test-transformers": ["torch>=2.6", "transformers>=5"],
    "lint": ["grimp>=3.0", "import-linter>=2.1", "mypy>=1.13", "ruff>=0.12"],
}
# What users may want, but for spaCy, which is large and whose models are not on PyPI; and that with
# what tests and lint need, but for PyTorch, which scripts/setup_env.sh installs where there is a
# build without CUDA. Tests skip without the two.
FOR_USERS = "beam formats hub mcp page passages plots search serve textblob train".split()
TOGETHER = {
    name: sorted({requirement for extra in extras for requirement in EXTRAS[extra]})
    for name, extras in {"all": FOR_USERS, "dev": (*FOR_USERS, "test", "lint")}.items()
}


def version() -> str:
    """The version, which stands in mate_tf/__init__.py alone."""
    (found,) = re.findall(r'^__version__ = "(.+)"$', read("mate_tf/__init__.py"), re.MULTILINE)
    return found


def description() -> str:
    """The README, with links that work on a package index."""
    text = re.sub(r"(!\[[^]]*\]\()(?!https?:)", rf"\1{URL}/raw/main/", read("README.md"))
    text = re.sub(r"(\]\()(?=#)", rf"\1{URL}", text)
    return re.sub(r"(\]\()(?!https?:)", rf"\1{URL}/blob/main/", text)


def read(name: str) -> str:
    """The text of a file of the project."""
    return (ROOT / name).read_text(encoding="utf-8")


setup(
    name="mate_tf",
    version=version(),
    description="Questions answered from whole tables, with attention linear in the table's size.",
    long_description=description(),
    long_description_content_type="text/markdown",
    author="The mate_tf authors",
    url=URL,
    project_urls={
        "Changelog": f"{URL}/blob/main/CHANGELOG.md",
        "Documentation": f"{URL}/tree/main/docs",
        "Issues": f"{URL}/issues",
    },
    # The latter for the weights of mate_tf/default_model.
    license_expression="Apache-2.0 AND CC-BY-SA-4.0",
    license_files=["LICENSE", "mate_tf/default_model/LICENSE"],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: Console",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Natural Language :: English",
        "Operating System :: MacOS",
        "Operating System :: Microsoft :: Windows",  # without training and `tables`
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Programming Language :: Python :: 3.14",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Typing :: Typed",
    ],
    keywords=["attention", "keras", "question answering", "tables", "tapas", "tensorflow"],
    platforms=["Linux", "macOS", "Windows"],
    python_requires=">=3.11,<3.15",
    packages=find_namespace_packages(include=["mate_tf", "mate_tf.*"]),
    entry_points={"console_scripts": ["mate-tf=mate_tf.command_line.main:main"]},
    package_data={
        "mate_tf": ["py.typed", "default_model/*"],
        "mate_tf.datasets": ["*.txtpb"],
        "mate_tf.page": ["*.css", "*.js", "*.txt"],
    },
    install_requires=CORE,
    extras_require={**EXTRAS, **TOGETHER},
)
