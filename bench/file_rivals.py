"""Programs that evaluate files, to be run as whole processes: fastrec, and the best queries of Polars and DuckDB.

Each takes the paths of lists and truth, or of a log, and prints its values as JSON. The queries of all 30 values use
that no two scores of a user are equal; fastrec does not know that, and checks all of its input.
"""

from __future__ import annotations

METRICS = ("precision", "recall", "hit_rate", "ndcg", "map", "mrr")
CUTOFFS = (5, 10, 20, 50, 100)
LOG_METRICS = ("auc", "gauc", "log_loss", "ndcg@10")

FASTREC = f"""
import json, sys, fastrec
print(json.dumps(dict(fastrec.evaluate_files(*sys.argv[1:3], metrics={list(METRICS)}, k={list(CUTOFFS)}))))
"""
FASTREC_LOG = f"""
import json, sys, fastrec
print(json.dumps(dict(fastrec.evaluate_files(sys.argv[1], metrics={list(LOG_METRICS)}))))
"""
SCAN = """
import json, sys
import polars as pl
scan = pl.scan_parquet if sys.argv[1].endswith("parquet") else pl.scan_csv
"""
POLARS = (
    SCAN
    + """
cutoffs = [5, 10, 20, 50, 100]
recs, truth = map(scan, sys.argv[1:3])
ranked = recs.with_columns(rank=pl.col("score").rank("ordinal", descending=True).over("user_id"))
hits = ranked.join(truth, on=["user_id", "item_id"]).select("user_id", "rank").sort("user_id", "rank")
hits = hits.with_columns(nth=pl.col("rank").cum_count().over("user_id"))
columns = [pl.col("rank").min().alias("first")]
for k in cutoffs:
    within = pl.col("rank") <= k
    columns += [
        within.sum().alias(f"hits{k}"),
        (1 / (pl.col("rank") + 1).log(2)).filter(within).sum().alias(f"dcg{k}"),
        (pl.col("nth") / pl.col("rank")).filter(within).sum().alias(f"precisions{k}"),
    ]
found = truth.group_by("user_id").agg(n=pl.len()).join(hits.group_by("user_id").agg(columns), on="user_id", how="left")
ideals = pl.LazyFrame({"place": range(1, 101)}, schema={"place": pl.UInt32}).with_columns(
    ideal=(1 / (pl.col("place") + 1).log(2)).cum_sum()
)
values = []
for k in cutoffs:
    found = found.with_columns(place=pl.min_horizontal("n", pl.lit(k, pl.UInt32)))
    found = found.join(ideals.rename({"ideal": f"ideal{k}"}), on="place", how="left")
    found = found.rename({"place": f"place{k}"})
    n_hits = pl.col(f"hits{k}").fill_null(0)
    values += [
        (n_hits / k).mean().alias(f"precision@{k}"),
        (n_hits / pl.col("n")).mean().alias(f"recall@{k}"),
        (n_hits > 0).mean().alias(f"hit_rate@{k}"),
        (pl.col(f"dcg{k}").fill_null(0) / pl.col(f"ideal{k}")).mean().alias(f"ndcg@{k}"),
        (pl.col(f"precisions{k}").fill_null(0) / pl.col(f"place{k}")).mean().alias(f"map@{k}"),
        pl.when(pl.col("first") <= k).then(1 / pl.col("first")).otherwise(0).mean().alias(f"mrr@{k}"),
    ]
print(json.dumps(found.select(values).collect().row(0, named=True)))
"""
)
CONNECT = """
import json, math, sys
import duckdb
con = duckdb.connect(config={"preserve_insertion_order": "false"})
con.execute("SET enable_progress_bar = false")
"""
# ranks of the few hits alone, counted, took less than half the time of ranks of all rows
DUCKDB = (
    CONNECT
    + """
cutoffs = [5, 10, 20, 50, 100]
columns, values = [], {}
for k in cutoffs:
    columns += [
        f"count(*) filter (rank <= {k}) hits{k}",
        f"coalesce(sum(1 / log2(rank + 1)) filter (rank <= {k}), 0) dcg{k}",
        f"coalesce(sum(nth / rank) filter (rank <= {k}), 0) precisions{k}",
    ]
    values |= {
        f"precision@{k}": f"avg(coalesce(hits{k}, 0) / {k})",
        f"recall@{k}": f"avg(coalesce(hits{k}, 0) / n)",
        f"hit_rate@{k}": f"avg((coalesce(hits{k}, 0) > 0)::int)",
        f"ndcg@{k}": f"avg(coalesce(dcg{k}, 0) / ideals[least(n, {k})])",
        f"map@{k}": f"avg(coalesce(precisions{k}, 0) / least(n, {k}))",
        f"mrr@{k}": f"avg(case when first <= {k} then 1 / first else 0 end)",
    }
ideals = [sum(1 / math.log2(rank + 1) for rank in range(1, n + 1)) for n in range(1, 101)]
recs, truth = (f"'{path}'" for path in sys.argv[1:3])
row = con.execute(f'''
with found as materialized (select user_id, score from {recs} join {truth} using (user_id, item_id)),
ranked as (
    select user_id, found.score, 1 + count(*) filter (r.score > found.score) as rank
    from {recs} as r join found using (user_id) group by all
),
hits as (select *, row_number() over (partition by user_id order by rank) as nth from ranked),
lists as (select user_id, min(rank) as first, {", ".join(columns)} from hits group by user_id),
held as (select user_id, count(*) as n from {truth} group by user_id)
select {", ".join(values.values())} from (select *, {ideals} as ideals from held left join lists using (user_id))
''').fetchall()[0]
print(json.dumps(dict(zip(values, row))))
"""
)
POLARS_NDCG = (
    SCAN
    + """
recs, truth = map(scan, sys.argv[1:3])
found = recs.filter(pl.col("rank") <= 10).join(truth, on=["user_id", "item_id"]).group_by("user_id").agg(
    dcg=(1 / (pl.col("rank") + 1).log(2)).sum()
)
ideals = pl.LazyFrame({"n": range(1, 11)}, schema={"n": pl.UInt32}).with_columns(
    ideal=(1 / (pl.col("n") + 1).log(2)).cum_sum()
)
held = truth.group_by("user_id").agg(n=pl.len().clip(0, 10)).join(ideals, on="n")
value = held.join(found, on="user_id", how="left").select((pl.col("dcg").fill_null(0) / pl.col("ideal")).mean())
print(json.dumps({"ndcg@10": value.collect().item()}))
"""
)
DUCKDB_NDCG = (
    CONNECT
    + """
recs, truth = (f"'{path}'" for path in sys.argv[1:3])
value = con.execute(f'''
with held as (select user_id, least(count(*), 10) as n from {truth} group by user_id),
ideal as (select n, sum(1 / log2(n + 1)) over (order by n) as ideal from range(1, 11) as r(n)),
found as (
    select user_id, sum(1 / log2(rank + 1)) as dcg
    from {recs} join {truth} using (user_id, item_id) where rank <= 10 group by user_id
)
select avg(coalesce(dcg, 0) / ideal) from held join ideal using (n) left join found using (user_id)
''').fetchall()[0][0]
print(json.dumps({"ndcg@10": value}))
"""
)
POLARS_LOG = (
    SCAN
    + """
log = scan(sys.argv[1])
positive, score = pl.col("label") == 1, pl.col("score").cast(pl.Float64)
users = log.with_columns(rank=pl.col("score").rank("ordinal").over("user_id")).group_by("user_id").agg(
    positives=positive.sum(), n=pl.len(), ranks=pl.col("rank").filter(positive).sum()
)
p, n = pl.col("positives").cast(pl.Float64), pl.col("n")
area = (pl.col("ranks") - p * (p + 1) / 2) / (p * (n - p))
gauc = users.filter((p > 0) & (p < n)).select((area * n).sum() / n.sum())
loss = log.select(-pl.when(positive).then(score).otherwise(1 - score).log().mean())
values = (found.item() for found in pl.collect_all([gauc, loss]))
print(json.dumps(dict(zip(("gauc", "log_loss"), values))))
"""
)
DUCKDB_LOG = (
    CONNECT
    + """
log = f"'{sys.argv[1]}'"
row = con.execute(f'''
with ranked as (select user_id, label, row_number() over (partition by user_id order by score) as rank from {log}),
users as (
    select sum(label)::double as p, count(*) as n, sum(rank) filter (label = 1) as ranks from ranked group by user_id
)
select
    (select sum((ranks - p * (p + 1) / 2) / (p * (n - p)) * n) / sum(n) from users where p > 0 and p < n),
    (select -avg(ln(case when label = 1 then score::double else 1 - score::double end)) from {log})
''').fetchall()[0]
print(json.dumps(dict(zip(("gauc", "log_loss"), row))))
"""
)
READ = (
    SCAN
    + """
for path in sys.argv[1:]:
    scan(path).collect()
print("{}")
"""
)
