"""Read table files, and make features, targets and eras of their columns."""

import fnmatch
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api import types
from pyarrow import csv, dataset

from sklearn_era._era_labels import categories_of, kind_of, label_texts
from sklearn_era._era_routing import known_labels, takes
from sklearn_era._eras import check_eras, encode_eras
from sklearn_era._files import whole_file
from sklearn_era._label_columns import EraColumns
from sklearn_era._tables.parquet import categorical_names, index_names
from sklearn_era._tables.target import are_classes
from sklearn_era.cli import _categories, _ui
from sklearn_era.cli._categories import as_number, find_known, spell
from sklearn_era.cli._ui import InputError, check_known, check_suffix, writable
from sklearn_era.model_files._estimators import inner_models

# Suffixes of file names, with the separator of text files.
SUFFIXES = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
SUFFIXES |= {".parquet": "", ".feather": ""}

# Numbers in any notation, such as 1,234.5 or $1.5 or 12 %, and dates; names of nothing.
_UNIT = r"\s*(?:[A-Z]{0,3}[$¢-¥₠-⃀]|EUR|USD|GBP|CHF|JPY|CNY|INR|kr|[%‰])?\s*"
_NUMBER = re.compile(
    rf"(?i)(?=.*\d)[-+(\u2212]*{_UNIT}[-+\u2212]?\d*(?:[.,'\u2019_\s]\d{{3}})*[.,]?\d*"
    rf"(?:E[-+]?\d+)?{_UNIT}[-)]*|\d{{4}}-\d\d-\d\d.*|\d\d:\d\d.*"
)
_NOTHING = re.compile(r"(?i)\W*|#?n\W?a\W?|#.+[!?]|nan|nil|none|null|missing|unknown")
_Text = str | None


class TableFile:
    """The table DATA, with lists of names: columns, categories and pandas index."""

    def __init__(self, path: Path, sep: _Text, encoding: _Text, decimal: _Text) -> None:
        self._path, self._encoding = path, "utf-8" if encoding is None else encoding
        self._suffix = check_suffix(path, SUFFIXES, "DATA")
        self._sep = SUFFIXES[self._suffix]
        self.decimal = decimal or ("." if self._sep else "")
        if not self._sep and (sep, encoding, decimal) != (None, None, None):
            raise InputError(f"--sep, --decimal, --encoding: '{path}' is no text file.")
        if sep is not None:
            self._sep = sep.replace(r"\t", "\t")
            if len(self._sep.encode()) != 1:
                raise InputError(f"--sep: '{sep}' is not a single ASCII character.")
        with self._readable():
            schema = self.open().schema
            self.index, self.categories = index_names(schema), categorical_names(schema)
        # A pandas index without a name gets a generated one, or none, and comes first.
        names = schema.names
        self.columns = [x for x in names if not re.match("__index_level_|$", x)]
        lost = [f"{i + 1}" for i, x in enumerate(names) if not x and any(names[:i])]
        if lost:
            told = f"column(s) {', '.join(lost)} of '{path}' have no name, and are left"
            _ui.echo(f"Warning: DATA: {told} out: name them in its header.", err=True)
        if not self.columns:
            raise InputError(f"DATA: '{path}' has no named columns.")
        [(name, times)] = Counter(self.columns).most_common(1)
        if times > 1:
            raise InputError(f"DATA: '{path}' has two columns named '{name}'.")

    def find(self, name: str, argument: str) -> str:
        """Return a column's name if the file has it, else raise InputError."""
        return check_known(name, self.columns, f"{argument}: there is no column")

    def distinct(self, given: dict[str, str | None]) -> dict[str, str]:
        """Return a dict from each given column to the option that names the column;
        raise InputError if two options name the same column.
        """
        found: dict[str, str] = {}
        for of, name in given.items():
            if name is not None and found.setdefault(self.find(name, of), of) != of:
                raise InputError(f"{of}: '{name}' is the {found[name]} column.")
        return found

    def select(self, patterns: Sequence[str] | None, argument: str) -> list[str]:
        """Return the columns that an option's names and shell patterns select."""
        found: list[str] = []
        for pattern in patterns or ():
            # A column's name may contain commas or spaces, or brackets like a pattern.
            if pattern in self.columns:
                found.append(pattern)
                continue
            for part in pattern.split(","):
                name = part.strip()
                matches = [x for x in (name, part) if x in self.columns][:1]
                matches = matches or fnmatch.filter(self.columns, name)
                matches = matches or fnmatch.filter(self.columns, part)
                found += matches or [self.find(name, argument)]
        return list(dict.fromkeys(found))

    def read(self, columns: Sequence[str], text: Collection[str]) -> pd.DataFrame:
        """Return columns as a data frame; values of the columns `text` stay text."""
        frame = self._load(columns, text)
        numbers = ("boolean", "decimal", "empty", "integer")  # kept as objects
        for name, column in frame.items():
            kind = types.infer_dtype(column, skipna=True)
            if kind == "string":  # in which "NA" is no missing value
                frame[name] = column.mask(column == "")
            elif column.dtype == object and name not in text and kind in numbers:
                frame[name] = column.astype(float)
        return frame

    def copy(self, columns: Sequence[str]) -> pd.DataFrame:
        """Return columns as they are in the file; values of a text file are text."""
        if self._sep:
            return self.read(columns, columns)
        return self._load(columns, (), keep_dates=True)

    def _load(
        self, columns: Sequence[str], text: Collection[str], keep_dates: bool = False
    ) -> pd.DataFrame:
        with self._readable():
            table = self.open(list(dict.fromkeys(columns)), text)
            table = pa.table({x.name: _plain(x, table[x.name]) for x in table.schema})
            # Without metadata a pandas index stays a column.
            given = {"ignore_metadata": True, "integer_object_nulls": True}
            frame = table.to_pandas(date_as_object=keep_dates, **given)
        if not len(frame):
            raise InputError(f"DATA: '{self._path}' has no rows.")
        return frame

    def open(self, columns: Any = None, text: Collection[str] = ()) -> Any:
        """Return the open file or, if `columns` are given, an Arrow table of these."""
        if not self._sep:
            opened = dataset.dataset(self._path, format=self._suffix[1:])
            return opened if columns is None else opened.to_table(columns=columns)
        given = {"include_columns": columns or [], "decimal_point": self.decimal}
        # Arrow itself overlooks .GZ in capitals.
        packing = "gzip" if self._suffix.endswith(".gz") else None
        return (csv.open_csv if columns is None else csv.read_csv)(
            pa.input_stream(self._path, compression=packing),
            # A row must fit into a block, even with a hundred thousand columns.
            csv.ReadOptions(encoding=self._encoding, block_size=2**24),
            csv.ParseOptions(delimiter=self._sep, newlines_in_values=True),
            csv.ConvertOptions(column_types=dict.fromkeys(text, pa.string()), **given),
        )

    def read_labels(self, column: pd.Series, argument: str) -> pd.Series:
        """Return labels, as text if numbers would change them (2024.10 to 2024.1)."""
        name, is_number = str(column.name), column.dtype.kind in "biuf"
        texts = self.read([name], [name])[name] if is_number else column
        if types.infer_dtype(texts) != "string":
            return column
        values, mark = dict(zip(texts, column, strict=True)), self.decimal
        if is_number:
            other = [x for x, y in values.items() if as_number(x, mark) != spell(y)]
            # Weeks 01 to 12 are numbers, codes of classes not; in DATA the fit decides.
            are_codes = argument in ("--groups", "--target", "--scoring")
            is_same = column.dtype.kind in ("b" if are_codes else "biu")
            if not other or (is_same and len({*values.values()}) == len(values)):
                return column
            told = f"is read as text: '{other[0]}' is not {values[other[0]]}, a number."
            if argument != "DATA":
                _ui.echo(f"Warning: {argument}: column '{name}' {told}", err=True)
        [(label, times)] = Counter(map(str.strip, values)).most_common(1)
        if times > 1:
            told = f"spells '{label}' in {times} ways that differ in spaces"
            raise InputError(f"{argument}: column '{name}' {told}; correct them.")
        return texts

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        # pyarrow's are of these, too; an unknown encoding is a LookupError.
        except (OSError, ValueError, LookupError, NotImplementedError) as error:
            reason = _ui.one_sentence(error).removesuffix(".")
            if self._sep and re.search("utf-?8|got 1: \\?+$", reason, re.IGNORECASE):
                reason += "; pass its encoding with --encoding"
            elif "Expected 1 columns" in reason:
                reason += "; pass its --sep, and --decimal ',' if numbers have commas"
            raise InputError(f"DATA: cannot read '{self._path}': {reason}.") from error


def _plain(field: Any, column: Any) -> Any:
    """Return a column's values; raise ValueError if they are binary or nested."""
    kind, subject = field.type, f"column '{field.name}'"
    if pa.types.is_binary(kind):
        raise ValueError(f"{subject} is not UTF-8 text")
    if pa.types.is_nested(kind):
        raise ValueError(f"{subject} holds {kind}, but must hold one value per row")
    if not pa.types.is_dictionary(kind):
        return column
    if str(kind.value_type) == "string_view":  # polars', which Arrow cannot decode
        kind = pa.dictionary(kind.index_type, pa.large_string())
    return column.cast(kind).cast(kind.value_type)


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a table to `path`, whole or not at all."""
    suffix = check_suffix(path, SUFFIXES, "--out")
    # pandas infers the compression from the file's name.
    with writable(path), whole_file(path) as temporary:
        if separator := SUFFIXES[suffix]:
            frame.to_csv(temporary, sep=separator, index=False)
        else:
            getattr(frame, f"to_{suffix[1:]}")(temporary)


def make_features(frame: Any, categorical: Any, remedy: str, decimal: str) -> Any:
    """Return features, where `categorical` columns become categories of text. Raise
    InputError if another column is not numeric.
    """
    X = frame.copy()
    for name, column in frame.items():
        if name in categorical:
            texts = {value: spell(value) for value in column.dropna().unique()}
            X[name] = column.map(texts).astype("category")
        elif not types.is_numeric_dtype(column.dtype):
            stray = _parse(column, decimal)[1]
            raise InputError(f"DATA: column '{name}' is not numeric{stray}; {remedy}.")
    return X


def has_categories(column: pd.Series) -> bool:
    """Return whether a column holds repeated texts, none of them a number or a date."""
    if types.infer_dtype(column, skipna=True) != "string":
        return False
    values = column.dropna().unique()
    is_number = any(_NUMBER.fullmatch(value.strip()) for value in values)
    return not is_number and values.size <= max(20, column.count() / 2)


def make_target(column: pd.Series, task: str, table: TableFile) -> tuple[Any, bool]:
    """Return (y, are_classes): a target's values, which are float64 unless classes."""
    subject, remedy = f"--target: column '{column.name}'", "pass --task classification"
    if task != "classification" and not types.is_numeric_dtype(column.dtype):
        numbers, stray = _parse(column, table.decimal)
        if numbers.notna().all():
            column = numbers
        elif task == "regression" or not _are_classes(column):
            text = f"is not numeric{stray}; correct such values"
            raise InputError(f"{subject} {text}, or {remedy}.")
    n_classes = column.nunique()
    is_number = types.is_any_real_numeric_dtype(column.dtype)
    is_whole = is_number and (column % 1 == 0).all() and column.abs().max() < 2**63
    is_code = task == "auto" and is_whole and _has_codes(table, str(column.name))
    is_text = is_code or not is_number
    if task == "auto" and is_text and n_classes > 20:
        text = f"is text with {n_classes:,} distinct values"
        if is_code:
            text = f"has {n_classes:,} distinct numbers, some of which start with 0"
        otherwise = ", else regression" if is_code else ""
        raise InputError(f"{subject} {text}; {remedy} if they are classes{otherwise}.")
    is_amount = task == "auto" and not (is_text or are_classes(column.to_numpy()))
    if is_amount or task == "regression":
        return column.to_numpy(np.float64), False
    if is_number and not is_whole:
        text = "holds fractions or numbers of at least 2**63, not classes"
        raise InputError(f"{subject} {text}; pass --task regression.")
    labels = table.read_labels(column, "--target")
    if labels.nunique() < 2:
        raise InputError(f"{subject} has only one class, '{labels.iloc[0]}'.")
    dtype = np.int64 if is_whole else None if column.dtype == bool else str
    return labels.to_numpy(dtype if labels is column else str), True


def _has_codes(table: TableFile, name: str) -> bool:
    """Return whether any value of a column is written with a leading 0, like 007."""
    texts = table.read([name], [name])[name].astype(str)
    return bool(texts.str.fullmatch(r"\s*0\d+\s*").any())


def refuse_missing(frame: pd.DataFrame, options: dict[str, str]) -> None:
    """Raise InputError if a column that is a key of `options` has missing values."""
    for name, of in options.items():
        if n_missing := int(frame[name].isna().sum()):
            text = f"column '{name}' has {_ui.count(n_missing, 'missing value')}"
            raise InputError(f"{of}: {text}: fill them in or drop their rows.")


def read_truth(table: TableFile, metadata: Any, classes: list[Any]) -> tuple[Any, Any]:
    """Return the target, as numbers or as labels among the model's `classes`, and the
    rows' encoded eras, or None if the table lacks the column of eras.
    """
    if (target := metadata.target) is None:
        raise InputError("--scoring: MODEL does not tell the name of its target.")
    used = {x: "DATA" for x in [metadata.era] if x in table.columns}
    options = {table.find(target, "--scoring"): "--scoring", **used}
    frame = table.read([*options], ())
    refuse_missing(frame, options)
    if classes:
        labels = table.read_labels(frame[target], "--scoring")
        texts = {x: spell(x) for x in labels.unique()}
        found = find_known(texts.values(), {spell(x): x for x in classes})
        others = [x for x in texts if isinstance(x, str) and texts[x] not in found]
        if others and not isinstance(classes[0], str):
            text = f"holds '{others[0]}', and the model's classes are numbers or flags"
            raise InputError(f"--scoring: column '{target}' {text}: correct it.")
        y = np.array([found.get(texts[x], x) for x in labels])
    else:
        remedy = "the model was fitted to numbers"
        y = make_features(frame[[target]], (), remedy, table.decimal)[target].to_numpy()
    eras = make_eras(frame, used, table)
    return y, None if eras is None else encode_eras(eras)


def make_eras(frame: pd.DataFrame, options: dict[str, str], table: TableFile) -> Any:
    """Return the label of each row's era, from the columns that are keys of `options`:
    None without a key, an array for one, and `EraColumns` for more keys. Labels of a
    categorical column sort in the order of its categories.
    """
    found: list[Any] = []
    for name, of in options.items():
        column = frame[name]
        labels: Any = table.read_labels(column, of)
        if labels is column:  # which has lost the order
            labels = table.open([name]).column(0)
        with _ui.refused():
            found.append(check_eras(labels, column, name=f"{of}: column '{name}'"))
    return EraColumns(found, tuple(options)) if len(found) > 1 else [*found, None][0]


def era_columns_of(estimator: Any, metadata: Any) -> list[Any]:
    """Return the columns of eras that predictions depend on: [] if there are none, a
    list of the fit's columns ([None] if the name is unknown), or [times, groups].
    """
    if (pair := vars(estimator).get("_pair")) is not None:
        order, names = pair
        times_first = [*names] if order[0] == "ordered" else [*names][::-1]
        return times_first if known_labels(estimator)[1] is not None else []
    columns = vars(estimator).get("_era_column")
    columns = columns if isinstance(columns, list) else [metadata.era]
    return columns if _differs_by_era(estimator) else []


def _differs_by_era(estimator: Any) -> bool:
    """Return whether a row's predictions may differ by era; True if it is unknown."""
    if hasattr(estimator, "_predictors"):  # trees
        return getattr(estimator, "era_effects", None) is not None
    if getattr(estimator, "_hands_eras_on", False):
        return any(map(_differs_by_era, inner_models(estimator)))
    return takes(estimator.predict, "eras")


def eras_as_fitted(
    frame: pd.DataFrame, columns: Sequence[str], table: TableFile, estimator: Any
) -> Any:
    """Return the rows' eras, as `EraColumns` if there are several columns. Labels are
    as in the fit: text or not, and known ones in its spelling.
    """
    found = make_eras(frame, dict.fromkeys(columns, "DATA"), table)
    eras = found.columns if len(columns) > 1 else [found]
    times, groups = known_labels(estimator)
    of_fit = [times, groups][: len(columns)]
    if len(columns) > 1 and groups is None:  # combinations
        of_fit = [np.array(x) for x in zip(*times, strict=True)]
    for i, (name, known) in enumerate(zip(columns, of_fit, strict=True)):
        if known is None:
            continue
        labels, mark = np.asarray(eras[i]), table.decimal
        was, now = kind_of(known[0]), kind_of(labels[0])
        if was == "text" and (now != "text" or categories_of(eras[i]) is None):
            texts = table.read([name], [name])[name] if mark else label_texts(labels)
            eras[i] = _categories.texts_as_fitted([*texts], known, mark)
        elif now == "text" and (known.dtype.kind == "M" or was in ("bool", "number")):
            given = labels.tolist(), known, mark, known is groups
            try:
                eras[i] = _categories.values_as_fitted(*given)
            except ValueError as error:
                told = f"column '{name}' holds '{error}', and the model knows {was}s "
                told += f"such as {label_texts(known)[-1]}: write them likewise."
                raise InputError(f"DATA: {told}") from error
    return found if len(columns) > 1 else eras[0]


def _are_classes(column: pd.Series) -> bool:
    """Return whether texts are classes: none is a number, or a tenth are names."""
    shares = column.astype(str).str.strip().value_counts(normalize=True)
    texts = [str(text) for text in shares.index]
    is_name = [not (_NUMBER.fullmatch(x) or _NOTHING.fullmatch(x)) for x in texts]
    # A few texts among numbers are typing errors, not classes.
    return not any(map(_NUMBER.fullmatch, texts)) or shares[is_name].sum() >= 0.1


def _parse(column: pd.Series, decimal: str) -> tuple[pd.Series, str]:
    """Return (numbers, remark): a column as numbers, NaN for texts that are not
    numbers, and a remark on the first such text.
    """
    swapped = str.maketrans(",.", ".,") if decimal == "," else {}
    numbers = pd.to_numeric(column.astype(str).str.translate(swapped), errors="coerce")
    is_null = column.isin(csv.ConvertOptions().null_values)  # among numbers
    row = int(((numbers.isna() & column.notna()) * (2 - is_null)).to_numpy().argmax())
    value = column.iloc[row]
    stray = f" ({value!r} in row {row + 1:,})" if isinstance(value, str) else ""
    if decimal == "." and re.fullmatch(r"[^.]*\d,\d[^.]*", str(value)):
        stray += "; if its comma is a decimal mark, pass --decimal ','"
    return numbers, stray
