# The whole stack of a checkout, as `make setup` installs it.
#
#   docker build -t starleague .
#   docker run --rm --init -v "$PWD/runs:/starleague/runs" starleague           # make train
#   docker run --rm --init -v "$PWD/runs:/starleague/runs" starleague league    # any other target
FROM python:3.11-slim-bookworm

# hadolint ignore=DL3008
RUN apt-get update \
  && apt-get install --no-install-recommends --yes make \
  && rm -rf /var/lib/apt/lists/*

WORKDIR /starleague
COPY . .
RUN make setup

VOLUME /starleague/runs
ENTRYPOINT ["make"]
CMD ["train"]
