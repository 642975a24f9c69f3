# An image with the command `pyramidions`, which extracts, and writes with pretrained models: see docs/install.md.
ARG PYTHON=3.11

FROM python:${PYTHON}-slim-bookworm AS build
# As in scripts/setup.sh.
ARG TORCH=2.13.0
# Where pip finds torch: by default its own index, whose build for Linux brings CUDA; or that of PyTorch's CPU builds.
ARG TORCH_INDEX
ARG EXTRA=pretrained
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/pyramidions
ENV PATH=/opt/pyramidions/bin:$PATH
# Alone in its layer: it is the largest part, and seldom changes. (Pinned, but the linter cannot see it.)
# hadolint ignore=DL3013
RUN pip install ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} "torch==$TORCH"
WORKDIR /source
COPY setup.py pyproject.toml README.md LICENSE ./
COPY pyramidions pyramidions
# hadolint ignore=DL3013
RUN pip install ".[$EXTRA]"

FROM python:${PYTHON}-slim-bookworm
# Whoever runs it may write to the cache, under any user id.
RUN useradd --uid 1000 --create-home reader && install --directory --mode=1777 /cache
COPY --from=build /opt/pyramidions /opt/pyramidions
ENV PATH=/opt/pyramidions/bin:$PATH HF_HOME=/cache/huggingface
VOLUME /cache
USER 1000
WORKDIR /documents
ENTRYPOINT ["pyramidions"]
CMD ["--help"]
