"""Model files taken apart, changed and put together again."""

import io
import json
import zipfile

import numpy as np

MODEL = "model.json"
METADATA = "sklearn_era.json"


class Forgery:
    """The members of a model file: `documents` are its JSON, `arrays` by number."""

    def __init__(self, path):
        self.documents, self.arrays = {}, {}
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                content = archive.read(name)
                if name.endswith(".json"):
                    self.documents[name] = json.loads(content)
                else:
                    number = int(name.removeprefix("arrays/").removesuffix(".npy"))
                    self.arrays[number] = np.load(io.BytesIO(content))

    @property
    def parts(self):
        """The parameters and the attributes, as pairs of name and value."""
        _, parameters, attributes = self.documents[MODEL]["estimator"]
        return parameters["dict"], attributes["dict"]

    def attribute(self, *path):
        """The JSON of an attribute, or of what it has by a name."""
        pairs = self.parts[1]
        for name in path:
            found = dict(map(tuple, pairs))[name]
            pairs = found.get("dict") if isinstance(found, dict) else None
        return found

    def set(self, name, value):
        attributes = self.parts[1]
        attributes[:] = [pair for pair in attributes if pair[0] != name]
        attributes.append([name, value])

    def array_of(self, *path):
        """The number of the array of an attribute, or of what it has by a name."""
        return self.attribute(*path)["array"]

    def write(self, path, members=()):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, document in self.documents.items():
                archive.writestr(name, json.dumps(document))
            for number, array in self.arrays.items():
                with archive.open(f"arrays/{number}.npy", "w") as file:
                    np.lib.format.write_array(file, array, (1, 0))
            for name, content in dict(members).items():
                archive.writestr(name, content)
