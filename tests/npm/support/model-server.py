"""A llama.cpp server on a free loopback port: prints its address, and ends when its standard input is closed."""

import os
import sys

packages, model, window = sys.argv[1:4]
sys.path.insert(0, packages)

import xllamacpp  # noqa: E402

params = xllamacpp.CommonParams()
params.model.path = model
params.n_ctx = int(window)
params.n_parallel = 1
params.port = 0
params.ui = False
# More threads wait for each other: on a machine that also does other work, they take ten times as long.
for threads in (params.cpuparams, params.cpuparams_batch):
    threads.n_threads = 1
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
# The destructor of the server may wait for its threads; nothing is left to be saved.
os._exit(0)
