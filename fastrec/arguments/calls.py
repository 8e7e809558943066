"""The keyword arguments of each function, as groups of arguments."""

from fastrec.arguments.groups import (
    ArraysOfUsers,
    Catalogue,
    Classes,
    Cutoffs,
    Examination,
    FileColumnNames,
    FileOfItems,
    FileOfSeen,
    FileOfUsers,
    FileRelevance,
    FileSegments,
    FrameGroupings,
    FrameOfWeights,
    FrameSegments,
    FrameWeights,
    Groupings,
    IdColumnNames,
    InputFormat,
    ItemData,
    ItemPolicies,
    Like,
    Limits,
    ListColumnNames,
    ListPolicies,
    PerUser,
    Relevance,
    RowColumnNames,
    RowIds,
    RowPolicies,
    RowRelevance,
    RowSegments,
    Seen,
    SeenAlone,
    Threads,
    UserIds,
    Watched,
    WatchedRows,
)
from fastrec.arguments.models import ModelCatalogue, ModelNames, WorkingMemory
from fastrec.arguments.sampling import Corrected, Negatives, Sampled
from fastrec.arguments.sides import FilesOfUsers, OtherFrames, Reference
from fastrec.arguments.slates import Baseline, Clipping, Predictions, PropensityColumnNames, SlateColumnNames, SlateIds
from fastrec.arguments.tasks import EngineTasks, SparkTasks


class ListSettings(
    Cutoffs,
    PerUser,
    Relevance,
    Catalogue,
    ItemData,
    ItemPolicies,
    Examination,
    Like,
    ListPolicies,
    Negatives,
    Sampled,
    Corrected,
    Threads,
):
    """Arguments of `Evaluator`."""


class ListBatch(UserIds, ArraysOfUsers, Seen, Reference, ListColumnNames, Groupings, Watched):
    """Arguments of `Evaluator.update`."""


class ModelBatch(ModelNames, ArraysOfUsers, Seen, Reference, ListColumnNames, Groupings, Watched):
    """Arguments of `Evaluator.update_model`."""


class SideBatch(UserIds, ArraysOfUsers, ListColumnNames, Groupings, Watched):
    """Arguments of `Evaluator.update_sides`."""


class SegmentOptions(
    Cutoffs,
    PerUser,
    ArraysOfUsers,
    UserIds,
    Relevance,
    Catalogue,
    Seen,
    ItemData,
    ItemPolicies,
    Examination,
    Reference,
    ListColumnNames,
    Groupings,
    Like,
    ListPolicies,
    Threads,
):
    """Arguments of `evaluate_by_items`."""


class ListCurveOptions(
    ArraysOfUsers, UserIds, Relevance, Seen, ListColumnNames, Groupings, ListPolicies, Threads, Watched
):
    """Arguments of `interpolated_pr_curve`."""


class ListOptions(SegmentOptions, Sampled, Corrected, Watched):
    """Arguments of `evaluate`."""


class ModelOptions(
    Cutoffs,
    PerUser,
    ModelNames,
    ArraysOfUsers,
    Relevance,
    ModelCatalogue,
    Seen,
    ItemData,
    ItemPolicies,
    Reference,
    ListColumnNames,
    Groupings,
    Like,
    ListPolicies,
    Negatives,
    Corrected,
    WorkingMemory,
    Threads,
    Watched,
):
    """Arguments of `evaluate_model`."""


class TopOptions(ModelNames, ModelCatalogue, SeenAlone, IdColumnNames, WorkingMemory, Threads, Watched):
    """Arguments of `top_items`."""


class RowSettings(Cutoffs, PerUser, RowRelevance, Catalogue, Like, RowPolicies, Classes, Threads):
    """Arguments of `ScoreEvaluator`."""


class RowBatch(RowIds, ArraysOfUsers, RowColumnNames, Groupings, RowSegments, Watched):
    """Arguments of `ScoreEvaluator.update`."""


class ScoredRowData(Cutoffs, RowIds, ArraysOfUsers, RowColumnNames, Groupings):
    """Scored rows and what is known of their users."""


class RulesOfRows(RowRelevance, Catalogue, Like, RowPolicies, Classes, Threads):
    """How scored rows are evaluated."""


class PairedRowOptions(ScoredRowData, RulesOfRows):
    """Arguments of `compare_scores`."""


class RowOptions(ScoredRowData, RowSegments, RulesOfRows, PerUser, Watched):
    """Arguments of `evaluate_scores`."""


class FileOptions(
    Cutoffs,
    PerUser,
    FileColumnNames,
    FileSegments,
    FileOfUsers,
    FileOfSeen,
    FileOfItems,
    FilesOfUsers,
    InputFormat,
    FileRelevance,
    Catalogue,
    ItemPolicies,
    Examination,
    Like,
    ListPolicies,
    Sampled,
    Corrected,
    Classes,
    Limits,
    Threads,
    WatchedRows,
):
    """Arguments of `evaluate_files`."""


class ClusterLists(
    Cutoffs,
    FrameWeights,
    Relevance,
    Catalogue,
    ListColumnNames,
    FrameGroupings,
    ItemPolicies,
    Examination,
    Like,
    ListPolicies,
    Sampled,
    Corrected,
):
    """Arguments for lists on a cluster, without the sides."""


class EngineListOptions(ClusterLists, OtherFrames, EngineTasks):
    """Arguments of `fastrec.dask.evaluate` and `fastrec.ray.evaluate`."""


class SparkListOptions(ClusterLists, OtherFrames, PerUser, SparkTasks):
    """Arguments of `fastrec.spark.evaluate`."""


class SparkFileOptions(ClusterLists, FileOfSeen, FileOfItems, FilesOfUsers, PerUser, SparkTasks):
    """Arguments of `fastrec.spark.evaluate_files`."""


class SparkRowOptions(
    Cutoffs,
    FrameOfWeights,
    PerUser,
    FrameWeights,
    RowColumnNames,
    FrameGroupings,
    FrameSegments,
    RowRelevance,
    Catalogue,
    Like,
    RowPolicies,
    Classes,
    SparkTasks,
):
    """Arguments of `fastrec.spark.evaluate_scores`."""


class PolicyOptions(Clipping, Predictions, Baseline, SlateIds, SlateColumnNames, Threads):
    """Arguments of `policy_value`."""


class SparkPolicyOptions(Clipping, Predictions, Baseline, PropensityColumnNames, SlateColumnNames, SparkTasks):
    """Arguments of `fastrec.spark.policy_value`."""


class ExplainOptions(
    ArraysOfUsers,
    UserIds,
    Seen,
    ItemData,
    Reference,
    FileColumnNames,
    FileOfUsers,
    InputFormat,
    Relevance,
    Catalogue,
    Examination,
    ListPolicies,
    Classes,
    Limits,
    Threads,
    Watched,
):
    """Arguments of `explain`."""


class ExplainRowOptions(
    RowIds, ArraysOfUsers, RowColumnNames, Groupings, RowRelevance, Catalogue, RowPolicies, Classes, Threads, Watched
):
    """Arguments of `explain_scores`."""
