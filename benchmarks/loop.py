"""A step beside the plain way to write it: a PyTorch loop over agents."""

from collections.abc import Callable

import torch
from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from benchmarks._measure import Result, Row, interleaved, milliseconds, ratio
from benchmarks._settings import mnist_engine, paper_runs, stepper
from bezoar import data, networks
from bezoar._seeds import Purpose, generator
from bezoar.training import Workers

STEP = 0.1


def loop() -> Result:
    """One run of IOS with full gradients on MNIST, over the same by a plain loop."""
    with Workers() as workers:
        runs = paper_runs(("ios",), ("two_castle",))[:1]
        ours = stepper(mnist_engine(runs, workers))
        seconds = interleaved({"ours": ours, "plain": plain_loop()}, rounds=15, warm=3)
    return Result(
        "loop",
        "a plain PyTorch loop over agents, with autograd ÷ a step of one run",
        [
            Row(
                "plain loop ÷ step",
                ratio(seconds, "plain", "ours"),
                None,
                "",
                f"{milliseconds(seconds['plain']):.0f} against "
                f"{milliseconds(seconds['ours']):.1f} ms",
            )
        ],
    )


def plain_loop() -> Callable[[], None]:
    """Steps of a run with IOS, agent by agent, as experiments are mostly written."""
    mnist, network = data.mnist(), networks.create("two_castle")
    divide = data.partition("by_class")
    partition = divide(mnist.train_labels, mnist.classes, 10, generator(0, Purpose.PARTITION))
    images = torch.tensor(mnist.train).flatten(1).float() / 127.5 - 1
    labels = torch.tensor(mnist.train_labels)
    held = [torch.from_numpy(partition.samples(agent)) for agent in range(10)]
    samples = [images[places] for places in held]
    classes = [labels[places] for places in held]
    for agent in network.poisoned:
        classes[agent] = 9 - classes[agent]
    mixing = torch.from_numpy(network.mixing("metropolis").toarray()).float()
    hearing = [list(network.closed_neighbourhood(agent)) for agent in range(10)]
    models = [torch.nn.Linear(images.shape[1], 10) for _ in range(10)]
    optimisers = [torch.optim.SGD(model.parameters(), STEP) for model in models]

    def step() -> None:
        messages = []
        for model, optimiser, own, truth in zip(models, optimisers, samples, classes, strict=True):
            optimiser.zero_grad()
            cross_entropy(model(own), truth).backward()
            optimiser.step()
            messages.append(parameters_to_vector(model.parameters()).detach())
        for agent, model in enumerate(models):
            kept = list(hearing[agent])
            poisoned = sum(other in network.poisoned for other in kept)
            for _ in range(poisoned):
                inputs = torch.stack([messages[other] for other in kept])
                weights = mixing[agent, kept]
                mean = (weights[:, None] * inputs).sum(0) / weights.sum()
                del kept[int((inputs - mean).norm(dim=1).argmax())]
            inputs = torch.stack([messages[other] for other in kept])
            weights = mixing[agent, kept]
            mean = (weights[:, None] * inputs).sum(0) / weights.sum()
            vector_to_parameters(mean, model.parameters())

    return step
