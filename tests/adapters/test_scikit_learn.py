"""scikit-learn on a real cluster, through joblib: results equal those with one job."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from scaler_client import Client, register_joblib

X, Y = make_classification(n_samples=120, n_features=8, n_informative=5, n_classes=3, random_state=3)


@pytest.fixture
def backend(client: Client) -> Iterator[None]:
    register_joblib()
    with joblib.parallel_config(backend="scaler", client=client):
        yield


def forest(n_jobs: int | None = None) -> RandomForestClassifier:
    return RandomForestClassifier(n_estimators=12, max_depth=4, random_state=1, n_jobs=n_jobs)


def grid_search(n_jobs: int | None) -> Any:
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))
    search = GridSearchCV(pipeline, {"logisticregression__C": [0.01, 0.1, 1.0]}, cv=3, n_jobs=n_jobs).fit(X, Y)
    return search.best_params_, search.cv_results_["mean_test_score"], search.predict(X)


def random_search(n_jobs: int | None) -> Any:
    search = RandomizedSearchCV(
        LogisticRegression(max_iter=200), {"C": np.logspace(-2, 2, 20)}, n_iter=4, cv=3, random_state=5, n_jobs=n_jobs
    ).fit(X, Y)
    return search.best_params_, search.cv_results_["mean_test_score"]


def scores(n_jobs: int | None) -> Any:
    return cross_val_score(forest(), X, Y, cv=4, n_jobs=n_jobs)


def predictions(n_jobs: int | None) -> Any:
    return cross_val_predict(forest(), X, Y, cv=4, n_jobs=n_jobs)


def trees(n_jobs: int | None) -> Any:
    fitted = forest(n_jobs).fit(X, Y)
    # Not predict_proba: its threads add up the trees in any order.
    return [tree.tree_.threshold for tree in fitted.estimators_], fitted.predict(X)


def bagged(n_jobs: int | None) -> Any:
    return BaggingClassifier(LogisticRegression(), n_estimators=6, random_state=2, n_jobs=n_jobs).fit(X, Y).predict(X)


def one_by_one(n_jobs: int | None) -> Any:
    return OneVsRestClassifier(LogisticRegression(), n_jobs=n_jobs).fit(X, Y).predict_proba(X)


def search_among_forests(n_jobs: int | None) -> Any:
    """A search whose fits are parallel too."""
    search = GridSearchCV(forest(n_jobs), {"max_depth": [2, 4]}, cv=2, n_jobs=n_jobs).fit(X, Y)
    return search.best_params_, search.cv_results_["mean_test_score"], search.predict(X)


def scores_of_searches(n_jobs: int | None) -> Any:
    """Cross-validate searches over forests: three levels of parallel calls."""
    search = GridSearchCV(forest(n_jobs), {"max_depth": [2, 4]}, cv=2, n_jobs=n_jobs)
    return cross_val_score(search, X, Y, cv=2, n_jobs=n_jobs)


@pytest.mark.parametrize(
    "find",
    [
        grid_search, random_search, scores, predictions, trees, bagged, one_by_one, search_among_forests,
        scores_of_searches,
    ],
)  # fmt: skip
def test_results_are_as_with_1_job(find: Callable[[int | None], Any], backend: None) -> None:
    np.testing.assert_equal(find(-1), find(1))


def test_estimators_without_n_jobs(backend: None) -> None:
    np.testing.assert_equal(search_among_forests(None), search_among_forests(1))


def test_a_fit_that_fails(backend: None) -> None:
    with pytest.raises(ValueError, match="All the 6 fits failed"):
        GridSearchCV(LogisticRegression(), {"C": [-1.0, -2.0]}, cv=3).fit(X, Y)
    with pytest.raises(ValueError):
        GridSearchCV(LogisticRegression(), {"C": [-1.0]}, cv=3, error_score="raise").fit(X, Y)
