"""The synthetic data of the papers, with their numbers.

Something holds in every era, and something else does not. Each function returns a
`Bunch` with `X_train`, `y_train`, `eras_train`, the same with `_test` (or `_ood`), and
`feature_names`. Rows are grouped by era.

- DeLise (2023), *Era Splitting*, arXiv:2309.14496.
- Liao, Wu and Yan (2024), *Invariant Random Forest*, arXiv:2312.04273.
- Moneda (2021), *Domain Generalization, Invariance and the Time Robust Forest*, thesis.
- Aubin et al. (2021), *Linear Unit-Tests for Invariance Discovery*, arXiv:2102.10867.
- Arjovsky et al. (2019), *Invariant Risk Minimization*, arXiv:1907.02893.
- Du et al. (2025), *Beyond Discriminant Patterns*, arXiv:2109.10432, on the two before,
  and with an example of its own.

`make_shortcut_classification` is of no paper.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import special_ortho_group
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.utils import Bunch

# Probability that a shortcut is wrong, and the size of its noise, in each era of Liao
# et al.; the last era is for testing.
LIAO_FLIPS = (0.1, 0.4, 0.7)
LIAO_NOISE = (0.1, 2.0, 5.0)
# The same of the colours of Arjovsky et al., and how often a label is wrong.
COLOR_FLIPS = (0.1, 0.2, 0.9)
LABEL_FLIP = 0.25

_N_SPURIOUS = 5
_MARGIN, _MARGIN_NOISE = 0.1, 0.1

_Rows = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]


def make_shifted_sine_wave(
    random_state: int,
    *,
    n_eras: int = 8,
    n_samples_per_era: int = 64,
    n_test_eras: int = 1,
    shift_std: float = 1.0,
    shift_range: float | None = None,
    noise_std: float = 1.0,
) -> Bunch:
    """DeLise, section 5.1: y = sin(x) + b_e + N(0, noise_std²), with x ~ U(0, 2π).
    Whoever knows the sine, and takes the mean of the training eras' shifts b_e for the
    test era's, has a mean squared error of noise_std² + (1 + 1 / n_eras) var(b). The
    paper does not give the distribution of the shifts, which is N(0, shift_std²) here,
    or U(0, shift_range).
    """
    rng = np.random.RandomState(random_state)

    def sample(first: int, n_eras: int) -> dict[str, NDArray[Any]]:
        if shift_range is None:
            shifts = shift_std * rng.standard_normal(n_eras)
        else:
            shifts = rng.uniform(0, shift_range, n_eras)
        eras = np.repeat(np.arange(n_eras), n_samples_per_era)
        x = rng.uniform(0, 2 * np.pi, size=eras.size)
        y = np.sin(x) + shifts[eras] + noise_std * rng.standard_normal(eras.size)
        X = x[:, np.newaxis]
        return {"X": X, "y": y, "eras": first + eras, "signal": np.sin(x)}

    return _join(["x"], train=sample(0, n_eras), test=sample(n_eras, n_test_eras))


def make_liao_classification(
    random_state: int, *, n_features: int = 10, n_samples_per_era: int = 1000
) -> Bunch:
    """Liao et al., equation 23: noisy copies of a label, half of which turn round. With
    a label Y of equal odds, each of d invariant features is |Y - Bern(0.3)| + N(0, 1),
    and each of d shortcuts |Y - Bern(U_e)| + N(0, 1). The paper does not give the
    number of rows.
    """
    rng = np.random.RandomState(random_state)

    def sample(eras: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        y = rng.randint(0, 2, size=eras.size, dtype=np.int64)
        flips = np.repeat(
            [np.full(eras.size, 0.3), np.take(LIAO_FLIPS, eras - 1)], n_features, axis=0
        ).T
        X = np.abs(y[:, np.newaxis] - (rng.uniform(size=flips.shape) < flips))
        return {"X": X + rng.standard_normal(X.shape), "y": y, "eras": eras}

    names = _names("invariant", n_features) + _names("shortcut", n_features)
    train = sample(np.repeat([1, 2], n_samples_per_era))
    return _join(names, train=train, test=sample(np.repeat([3], n_samples_per_era)))


def make_liao_regression(
    random_state: int, *, n_features: int = 10, n_samples_per_era: int = 1000
) -> Bunch:
    """Liao et al., equation 24: causes of a target, and an effect that is ever noisier.
    The d causes are N(0, 1), Y is their sum plus N(0, d), and the effect is Y plus N(0,
    sigma_e² d), where the second argument is a variance. The paper leaves open whether
    it is one, and whether there are d effects. Read so, least squares has 1.93, 1.82,
    1.61 and 1.38 times the error of a random forest for d of 2, 5, 10 and 20, which is
    nearest to the 2.10, 1.78, 1.49 and 1.35 of its table 2.
    """
    rng = np.random.RandomState(random_state)
    scale = np.sqrt(n_features)

    def sample(eras: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        causes = rng.standard_normal((eras.size, n_features))
        y = causes.sum(axis=1)
        y += scale * rng.standard_normal(eras.size)
        noise = rng.standard_normal(eras.size) * (scale * np.take(LIAO_NOISE, eras - 1))
        return {"X": np.column_stack([causes, noise + y]), "y": y, "eras": eras}

    names = [*_names("invariant", n_features), "shortcut_0"]
    train = sample(np.repeat([1, 2], n_samples_per_era))
    return _join(names, train=train, test=sample(np.repeat([3], n_samples_per_era)))


def make_moneda_drift(
    random_state: int,
    *,
    n_samples_per_era: int = 1000,
    has_shift: bool = True,
    shortcut_noise_std: float = 0.0,
) -> Bunch:
    """Moneda, equations 5.5 and 5.6: a feature is the target in period 1, then noise.
    X_1 ~ N(0, 1), Y = X_1 + N(0, 1), X_2 = Y in period 1 and N(0, 1) later, and the
    class is 1 where Y > 0.5. Periods 3 and 4 are the holdout. X_1 alone has an area
    under the ROC curve of 0.836. Without shift, section 5.3.5, X_2 is the target
    throughout: the thesis' areas of 0.87 take noise on it, of standard deviation 1.
    """
    rng = np.random.RandomState(random_state)
    eras = np.repeat(np.arange(1, 5), n_samples_per_era)
    x1 = rng.standard_normal(eras.size)
    latent = x1 + rng.standard_normal(eras.size)
    noise = rng.standard_normal(eras.size)
    is_copy = (eras == 1) | (not has_shift)
    x2 = np.where(is_copy, latent + shortcut_noise_std * noise, noise)
    X, y = np.column_stack([x1, x2]), (latent > 0.5).astype(np.int64)
    parts = {
        part: {"X": X[rows], "y": y[rows], "eras": eras[rows]}
        for part, rows in (("train", eras <= 2), ("test", eras > 2))
    }
    return _join(["x1", "x2"], **parts)


def make_small_invariant_margin(
    random_state: int,
    *,
    n_eras: int = 3,
    n_ood_eras: int = 3,
    n_samples_per_era: int = 1000,
    n_invariant: int = 5,
    majority_share: float | None = None,
    scramble: bool = False,
) -> Bunch:
    """Aubin et al., the third unit test: a small margin that lasts beside a large one.
    With a side of ±1 for the two classes, invariant features are N(side 0.1, 0.1²), and
    spurious ones N(side mu_e, 0.1²) with mu_e ~ N(0, 1) once for each era. `ood` are
    rows of other eras. `majority_share` of the training rows are of the first era, and
    `scramble` rotates the features.
    """
    rng = np.random.RandomState(random_state)
    means = rng.standard_normal((n_eras + n_ood_eras, _N_SPURIOUS))

    def sample(eras: NDArray[np.int64]) -> _Rows:
        y = rng.randint(0, 2, size=eras.size, dtype=np.int64)
        side = 1 - 2 * y[:, np.newaxis]
        invariant = _MARGIN_NOISE * rng.standard_normal((eras.size, n_invariant))
        spurious = _MARGIN_NOISE * rng.standard_normal((eras.size, _N_SPURIOUS))
        return invariant + side * _MARGIN, spurious + side * means[eras], y

    train = _era_sizes(n_eras, n_samples_per_era, majority_share)
    sets = {
        "train": (sample, train),
        "test": (sample, [n_samples_per_era] * n_eras),
        "ood": (sample, [0] * n_eras + [n_samples_per_era] * n_ood_eras),
    }
    return _unit_test(sets, scramble, rng, means=means)


def make_cows_versus_camels(
    random_state: int,
    *,
    n_eras: int = 3,
    n_samples_per_era: int = 1000,
    n_invariant: int = 5,
    majority_share: float | None = None,
    scramble: bool = False,
) -> Bunch:
    """Aubin et al., the second unit test: cows on grass, camels on sand, mostly. A row
    is a cow with probability s_e, and before its usual background with p_e. With a = ±1
    for the animal and b = ±1 for the background, the faint foreground is 0.01 (a + N(0,
    0.1)), and the background b + N(0, 0.1), variances. The class is that of the
    foreground's sum. In `ood`, backgrounds are those of other rows of the era.
    """
    rng = np.random.RandomState(random_state)
    n_more = max(0, n_eras - 3)
    p = np.append([0.95, 0.97, 0.99][:n_eras], rng.uniform(0.9, 1, n_more))
    s = np.append([0.3, 0.5, 0.7][:n_eras], rng.uniform(0.3, 0.7, n_more))

    def sample(eras: NDArray[np.int64]) -> _Rows:
        cow = np.where(rng.uniform(size=eras.size) < s[eras], 1, -1)
        usual = np.where(rng.uniform(size=eras.size) < p[eras], 1, -1)
        invariant = np.sqrt(0.1) * rng.standard_normal((eras.size, n_invariant))
        invariant = (invariant + cow[:, np.newaxis]) * 0.01
        spurious = np.sqrt(0.1) * rng.standard_normal((eras.size, _N_SPURIOUS))
        spurious += (cow * usual)[:, np.newaxis]
        return invariant, spurious, (invariant.sum(axis=1) > 0).astype(np.int64)

    def exchange_backgrounds(eras: NDArray[np.int64]) -> _Rows:
        invariant, spurious, y = sample(eras - n_eras)
        # A sort by era, and at random within it: eras are in ascending order.
        order = np.lexsort((rng.uniform(size=eras.size), eras))
        return invariant, spurious[order], y

    equal = [n_samples_per_era] * n_eras
    sets = {
        "train": (sample, _era_sizes(n_eras, n_samples_per_era, majority_share)),
        "test": (sample, equal),
        "ood": (exchange_backgrounds, [0] * n_eras + equal),
    }
    return _unit_test(sets, scramble, rng, background_shares=p, cow_shares=s)


def make_colored_digits(random_state: int, *, n_components: int | None = None) -> Bunch:
    """Arjovsky et al.: digits whose colour predicts the label better than the shape.
    scikit-learn's 1797 digits stand in for MNIST. The label is digit >= 5, wrong in a
    quarter of the rows, the colour that label, wrong with probability e of the era, and
    the image stands in the colour's channel of two. A third of the digits are the test
    era. Features are pixels, or principal components of the training rows (Du et al.).
    """
    rng = np.random.RandomState(random_state)
    images, digits = load_digits(return_X_y=True)
    n_test = round(digits.size / 3)
    order = rng.permutation(digits.size)

    def sample(
        rows: NDArray[np.intp], first: int, n_eras: int
    ) -> dict[str, NDArray[Any]]:
        sizes = [len(places) for places in np.array_split(rows, n_eras)]
        eras = first + np.repeat(np.arange(n_eras), sizes)
        y = (digits[rows] >= 5) ^ (rng.uniform(size=rows.size) < LABEL_FLIP)
        flips = np.take(COLOR_FLIPS, eras)
        color = y ^ (rng.uniform(size=rows.size) < flips)
        channels = np.column_stack([color, ~color])
        pixels = channels[:, :, np.newaxis] * images[rows, np.newaxis] / 16
        labels = {"y": y, "eras": eras, "digit": digits[rows], "color": color}
        return {
            "X": pixels.reshape(rows.size, -1),
            **{key: values.astype(np.int64) for key, values in labels.items()},
        }

    train, test = sample(order[n_test:], 0, 2), sample(order[:n_test], 2, 1)
    names = [f"color{color}_{pixel}" for color in (1, 0) for pixel in range(64)]
    if n_components is not None:
        pca = PCA(n_components, svd_solver="full").fit(train["X"])
        for part in (train, test):
            part["X"] = pca.transform(part["X"])
        names = _names("component", n_components)
    return _join(names, train=train, test=test)


def make_anticausal_intervention(
    random_state: int,
    *,
    n_samples: int = 1000,
    n_samples_test: int = 2000,
    invariant_strength: float = 0.82,
    mediator_std: float = 0.5,
) -> Bunch:
    """Du et al., example 1: effects of a label, half of them by way of what changes.

    In the graph X_1 <- Y -> A -> X_2, with a label Y of equal odds, the five features
    X_1 are N((Y - 1/2) invariant_strength, 1), the mediator A, which is no feature, is
    N(±4 (Y - 1/2), mediator_std), and the five features X_2 are N(A, 0.5). The sign is
    - after an intervention, era 1: in a tenth of the training rows, and half of the
    test rows. The paper gives neither the functions nor the numbers; with these,
    boosting is right about the majority and wrong about the minority.
    """
    rng = np.random.RandomState(random_state)

    def sample(n_rows: int, minority_share: float) -> dict[str, NDArray[Any]]:
        n_minority = round(minority_share * n_rows)
        eras = np.repeat([0, 1], [n_rows - n_minority, n_minority])
        y = rng.randint(0, 2, size=n_rows, dtype=np.int64)
        centred = y - 0.5
        invariant = rng.standard_normal((n_rows, 5))
        invariant += invariant_strength * centred[:, np.newaxis]
        mediator = 4.0 * np.where(eras == 1, -centred, centred)
        mediator += mediator_std * rng.standard_normal(n_rows)
        variant = 0.5 * rng.standard_normal((n_rows, 5))
        variant += mediator[:, np.newaxis]
        return {"X": np.hstack([invariant, variant]), "y": y, "eras": eras}

    train, test = sample(n_samples, 0.1), sample(n_samples_test, 0.5)
    data = _join(_names("invariant", 5) + _names("variant", 5), train=train, test=test)
    data.is_invariant = np.arange(10) < 5
    # The best classifier on the invariant features adds them up.
    data.invariant_accuracy = float(ndtr(invariant_strength * np.sqrt(5) / 2))
    return data


def make_shortcut_classification(
    random_state: int,
    *,
    n_samples_per_era: int = 500,
    n_misleading_eras: int = 2,
    n_silent_eras: int = 4,
) -> Bunch:
    """Weak evidence in every era, and strong evidence that misleads in the test eras.
    Each of two classes has three invariant features and a shortcut, with standard
    deviation 1 and mean ``strength * ([named == class] - 1 / 2)``. An invariant feature
    has strength 1, and `named` is the row's class. The shortcut has strength 3; it
    names the other class in misleading eras, and in silent ones its strength is 0. The
    order of 16 training eras is drawn; all 4 test eras mislead.
    """
    rng, n_eras = np.random.RandomState(random_state), 16
    strengths = np.repeat([3.0, 0.0], [n_eras - n_silent_eras, n_silent_eras])
    shifts = np.zeros(n_eras, dtype=np.int64)
    shifts[n_eras - n_silent_eras - n_misleading_eras : n_eras - n_silent_eras] = 1
    order = rng.permutation(n_eras)

    def sample(
        first: int, strengths: NDArray[np.float64], shifts: NDArray[np.int64]
    ) -> dict[str, NDArray[Any]]:
        eras = np.repeat(np.arange(shifts.size), n_samples_per_era)
        y = rng.randint(0, 2, size=eras.size, dtype=np.int64)
        contrasts = np.eye(2) - 0.5
        invariant = np.repeat(contrasts[y], 3, axis=1)
        named = y ^ shifts[eras]
        X = np.hstack([invariant, strengths[eras, np.newaxis] * contrasts[named]])
        return {"X": X + rng.standard_normal(X.shape), "y": y, "eras": first + eras}

    names = [f"invariant_{label}_{i}" for label in range(2) for i in range(3)]
    data = _join(
        [*names, "shortcut_0_0", "shortcut_1_0"],
        train=sample(0, strengths[order], shifts[order]),
        test=sample(n_eras, np.full(4, 3.0), np.ones(4, dtype=np.int64)),
    )
    data.update(shortcut_strengths=strengths[order], shortcut_shifts=shifts[order])
    # The best classifier on the invariant features compares the sums of both classes.
    data.invariant_accuracy = float(ndtr(np.sqrt(3 / 2)))
    return data


def _names(kind: str, count: int) -> list[str]:
    return [f"{kind}_{index}" for index in range(count)]


def _join(feature_names: list[str], **parts: Mapping[str, NDArray[Any]]) -> Bunch:
    """Name the arrays of each part."""
    arrays = {
        f"{key}_{part}": values
        for part, of_part in parts.items()
        for key, values in of_part.items()
    }
    return Bunch(**arrays, feature_names=feature_names)


def _era_sizes(n_eras: int, n_rows: int, majority_share: float | None) -> list[int]:
    """The number of training rows of each era, `n_rows` on average."""
    if majority_share is None:
        return [n_rows] * n_eras
    n_majority = round(majority_share * n_eras * n_rows)
    others = np.array_split(np.arange(n_eras * n_rows - n_majority), n_eras - 1)
    return [n_majority, *map(len, others)]


def _unit_test(
    sets: Mapping[str, tuple[Callable[[NDArray[np.int64]], _Rows], list[int]]],
    scramble: bool,
    rng: np.random.RandomState,
    **of_eras: NDArray[np.float64],
) -> Bunch:
    """Draw each set's rows, by the number that it has of each era, and mix features."""
    parts: dict[str, dict[str, NDArray[Any]]] = {}
    for part, (sample, sizes) in sets.items():
        eras = np.repeat(np.arange(len(sizes)), sizes)
        invariant, spurious, y = sample(eras)
        parts[part] = {"X": np.hstack([invariant, spurious]), "y": y, "eras": eras}
    n_invariant = invariant.shape[1]
    n_features = n_invariant + _N_SPURIOUS
    # Drawn last: the rows are the same ones with and without.
    rotation = np.eye(n_features)
    names = _names("invariant", n_invariant) + _names("spurious", _N_SPURIOUS)
    if scramble:
        rotation = special_ortho_group.rvs(n_features, random_state=rng)
        names = _names("mixed", n_features)
        for arrays in parts.values():
            arrays["X"] = arrays["X"] @ rotation
    data = _join(names, **parts)
    is_invariant = (np.arange(n_features) < n_invariant) & (not scramble)
    data.update(of_eras, rotation=rotation, is_invariant=is_invariant)
    return data
