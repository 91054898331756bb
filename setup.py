"""Packaging of mate_tf."""

import pathlib

from setuptools import find_namespace_packages, setup

README = pathlib.Path(__file__).parent / "README.md"

EXTRAS = {
    "beam": ["apache-beam[tfrecord]"],
    "hub": ["huggingface_hub"],
    # Tables from HTML, Excel and Parquet files.
    "formats": ["lxml", "openpyxl", "pyarrow"],
    "page": ["gradio>=6"],
    "pandas": ["pandas"],
    "plots": ["matplotlib"],
    "serve": ["fastapi", "h11", "kserve>=0.21", "orjson", "prometheus_client", "uvicorn"],
    "spacy": ["spacy"],
    "textblob": ["textblob"],
    "test": ["httpx", "hypothesis", "playwright", "pytest>=8", "pytest-xdist"],
    "test-transformers": ["torch", "transformers>=5"],
    "lint": ["mypy", "ruff"],
}
# All but spaCy, which is large and whose models are not on PyPI, and PyTorch, which
# scripts/setup_env.sh installs where it is to be had without CUDA; their tests skip without them.
APART = ("spacy", "test-transformers")
DEVELOPMENT = {name for extra in EXTRAS if extra not in APART for name in EXTRAS[extra]}

setup(
    name="mate_tf",
    version="0.1.0",
    description="Questions answered from whole tables, with attention linear in the table's size.",
    long_description=README.read_text(encoding="utf-8") if README.exists() else "",
    long_description_content_type="text/markdown",
    license="Apache-2.0 AND CC-BY-SA-4.0",  # the latter of mate_tf/default_model's weights
    python_requires=">=3.11",
    packages=find_namespace_packages(include=["mate_tf", "mate_tf.*"]),
    entry_points={"console_scripts": ["mate-tf=mate_tf.command_line.main:main"]},
    package_data={"mate_tf": ["py.typed", "default_model/*"]},
    install_requires=[
        # The newest three whose own requirements agree; they move together.
        "tensorflow~=2.20.0",
        "tensorflow-text~=2.20.0",
        "tf-models-official~=2.20.0",
        "absl-py",
        "nltk",
        "numpy",
        "scikit-learn",
        "scipy",
        "safetensors",
        # At run time: tensorflow_hub, which tf-models-official imports, needs pkg_resources, and
        # setuptools 82 no longer has it.
        "setuptools<82",
        "tqdm",
    ],
    extras_require={**EXTRAS, "dev": sorted(DEVELOPMENT)},
)
