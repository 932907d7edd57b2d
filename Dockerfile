# Container images of numalign, for docker and buildah:
#
#   docker build --target agent -t numalign-agent .          agent, operator and command line
#   docker build --target scheduler -t numalign-scheduler .  the same with the scheduler's kernel as machine code
#
# `make image` builds both as OCI archives, with the same digests every time: docs/develop/image.md.

# Any image with Python 3.11 or newer as `python3` and glibc. BUILD_BASE also has venv, pip and a shell, and the very
# same Python.
ARG BASE=python:3.13-slim
ARG BUILD_BASE=${BASE}

# --- Everything that runs in both images, in /opt/numalign -----------------------------------------------------------
FROM ${BUILD_BASE} AS build
ENV PIP_CACHE_DIR=/var/cache/pip PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore \
    PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0
WORKDIR /build
RUN python3 -m venv /opt/build && python3 -m venv --without-pip /opt/numalign
COPY requirements/build.txt requirements/runtime.txt requirements/tls.txt requirements/
# The secrets are how a machine reaches its package index: they are seen while the command runs, and kept nowhere.
RUN --mount=type=cache,target=/var/cache/pip \
    --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=certificates,target=/etc/pip.pem \
    /opt/build/bin/pip install --require-hashes --only-binary :all: -r requirements/build.txt \
 && /opt/build/bin/pip --python /opt/numalign install --no-compile --require-hashes --only-binary :all: \
    -r requirements/runtime.txt -r requirements/tls.txt
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY src src
RUN /opt/build/bin/pip wheel --no-cache-dir --no-index --no-deps --no-build-isolation --wheel-dir /wheels . \
 && /opt/build/bin/pip --python /opt/numalign install --no-compile --no-cache-dir --no-index --no-deps /wheels/*.whl
COPY tools/imagetree.py tools/
RUN python3 tools/imagetree.py /opt/numalign

# --- What the scheduler adds, in /opt/fast ---------------------------------------------------------------------------
FROM build AS fast
COPY requirements/fast.txt requirements/dashboard.txt requirements/
RUN --mount=type=cache,target=/var/cache/pip \
    --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=certificates,target=/etc/pip.pem \
    /opt/build/bin/pip --python /opt/numalign install --no-compile --require-hashes --only-binary :all: --prefix /opt/fast \
    -r requirements/fast.txt -r requirements/dashboard.txt \
 && python3 tools/imagetree.py /opt/fast
COPY tools/precompile.py tools/
# The kernel as machine code for every CPU of the architecture: what the image's own settings ask for.
ENV NUMBA_CPU_NAME=generic NUMBA_CPU_FEATURES=""
RUN NUMBA_CACHE_DIR=/opt/fast/kernels /opt/numalign/bin/python3 tools/precompile.py /opt/fast

# --- The images ------------------------------------------------------------------------------------------------------
FROM ${BASE} AS agent
# Without a shell: the base need not have one. The root file system is read-only in a pod, so nothing can be cached later.
RUN ["python3", "-c", "import compileall, py_compile, sysconfig; compileall.compile_dir(sysconfig.get_path('stdlib'), quiet=2, force=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)"]
COPY --from=build /opt/numalign /opt/numalign
ENV PATH=/opt/numalign/bin:/usr/local/bin:/usr/bin:/bin PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
ENTRYPOINT ["numalign"]
ARG VERSION=unknown
ARG REVISION=unknown
ARG CREATED=unknown
LABEL org.opencontainers.image.title="numalign-agent" \
      org.opencontainers.image.description="NUMA-aware scheduling for Kubernetes: node agent, operator and command line" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"

FROM agent AS scheduler
COPY --from=fast /opt/fast /opt/numalign
ENV NUMBA_CACHE_DIR=/opt/numalign/kernels NUMBA_CACHE_LOCATOR_CLASSES=numalign.process.kernelcache.ReadableCache \
    NUMBA_CPU_NAME=generic NUMBA_CPU_FEATURES=""
LABEL org.opencontainers.image.title="numalign-scheduler" \
      org.opencontainers.image.description="NUMA-aware scheduling for Kubernetes: scheduler with compiled kernel"
