"""Makes traces as Parquet files: `make_traces.py FOLDER ROWS`. The same number gives the same rows.

Each file has up to a million. Rows repeat after a while, apart from their ids, since drawing every call
anew would take longer than scoring it; groups are servers, and about a third of the traces goes wrong.
"""

import json
import pathlib
import random
import sys

import pyarrow
import pyarrow.compute
import pyarrow.parquet

FILE = 1_000_000
DISTINCT = 5_000
GROUPS = 100

CALL = pyarrow.struct([("name", pyarrow.string()), ("arguments", pyarrow.string())])


def call(draw):
    server, tool = draw.randrange(40), draw.randrange(25)
    arguments = {"query": f"word-{draw.randrange(10_000)}", "limit": draw.randrange(1, 50), "exact": draw.random() < 0.5}
    return {"name": f"server-{server}__tool-{tool}", "arguments": json.dumps(arguments)}


def distinct(draw):
    expected = [call(draw) for _ in range(draw.randrange(1, 5))]
    made = list(expected)
    luck = draw.random()
    if luck < 0.1:
        made.pop()
    elif luck < 0.2:
        made.append(call(draw))
    elif luck < 0.35:
        made[draw.randrange(len(made))] = call(draw)
    return made, expected, draw.randrange(200, 9_000), round(draw.random() * 20_000, 3)


def main(folder, rows):
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(27)
    known = [distinct(draw) for _ in range(DISTINCT)]
    columns = {
        "calls": pyarrow.array([made for made, _, _, _ in known], pyarrow.list_(CALL)),
        "expected_calls": pyarrow.array([expected for _, expected, _, _ in known], pyarrow.list_(CALL)),
        "output_tokens": pyarrow.array([tokens for _, _, tokens, _ in known], pyarrow.int64()),
        "duration_ms": pyarrow.array([duration for _, _, _, duration in known], pyarrow.float64()),
    }
    joined = pyarrow.compute.binary_join_element_wise
    text = lambda numbers, width: pyarrow.compute.utf8_lpad(numbers.cast(pyarrow.string()), width, "0")
    repeated = {}
    for number, start in enumerate(range(0, rows, FILE)):
        size = min(FILE, rows - start)
        ids = pyarrow.array(range(start, start + size))
        # Files that begin at the same place of the repetition differ in their ids alone.
        if (start % DISTINCT, size) not in repeated:
            places = pyarrow.array([(n * 7919) % DISTINCT for n in range(start, start + size)])
            repeated = {(start % DISTINCT, size): {name: column.take(places) for name, column in columns.items()}}
        groups = pyarrow.array([(n * 31) % GROUPS for n in range(start, start + size)])
        table = pyarrow.table(
            {
                "id": joined("trace-", text(ids, 10), ""),
                "group": joined("server-", text(groups, 3), ""),
                **repeated[start % DISTINCT, size],
            }
        )
        path = folder / f"traces-{number:04}.parquet"
        pyarrow.parquet.write_table(table, path, compression="zstd", row_group_size=65_536)
    print(f"{rows} traces in {folder}: {sum(path.stat().st_size for path in folder.iterdir()) / 1e6:.0f} MB")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
