/**
 * tccl/planner: what NCCL decides for a machine or cluster. Pure code: it runs in browsers and in Node.
 * docs/reference/planner.md describes each function and value.
 *
 * @module tccl/planner
 */
export {
  describeError,
  InputError,
  InternalError,
  InvalidArgumentError,
  InvalidUsageError,
  ncclResults,
  RemoteError,
  SystemError,
  TcclError,
  TimeoutError,
  type ErrorCode,
  type ErrorDetails,
} from '../errors.js';
export {
  defaultParameters,
  type EnvironmentNote,
  type Parameters,
  parametersFromEnvironment,
  parameterTable,
} from './parameters.js';
export {
  graphNames,
  type ChannelGraph,
  CrossNic,
  type GraphHeader,
  GraphId,
  type GraphName,
  type HostGraphs,
  Pattern,
} from './graph/graph.js';
export { type GraphJson, graphToJson } from './graph/graph-json.js';
export { graphLines } from './graph/graph-text.js';
export { graphsToXml } from './graph/graph-xml.js';
export type { Agreement } from './graph/merge/agreement.js';
export type { AlignedGraphs } from './graph/merge/align.js';
export type { Collnet, CollnetDirect } from './graph/merge/collnet.js';
export { contradictions } from './graph/merge/contradictions.js';
export type { HostContribution, NodeContribution, RankContribution } from './graph/merge/contribution.js';
export { type ChainLinks, ringFrom, type RingNeighbours, type TreeLinks } from './graph/merge/links.js';
export type { Merged } from './graph/merge/merge.js';
export type { HostRun, NodeTable } from './graph/merge/nodes.js';
export type { Nvls, NvlsLinks } from './graph/merge/nvls.js';
export type { BufferBytes, P2pSizes } from './graph/merge/p2p.js';
export type { P2pOrder, P2pSchedule } from './graph/merge/p2p-schedule.js';
export { type PrintOptions, ringLines, treesLine } from './graph/merge/print.js';
export type { Rings } from './graph/merge/rings.js';
export { describeMergeEvent, type MergeEvent, type MergeListener } from './graph/merge/trace.js';
export type { Trees } from './graph/merge/trees.js';
export { type ChangedRule, type NamedRule, rulesBetween } from './versions/describe.js';
export type { Rule, Step } from './versions/rule.js';
export type { RuleName, Rules } from './versions/rules.js';
export { ncclInTorch } from './versions/torch.js';
export { comparedVersions, coveredVersions, defaultVersion, ncclVersion, releases } from './versions/version.js';
export type { ExitRefusal } from './graph/nics.js';
export { searchHost, type SearchOptions } from './graph/search-host.js';
export { type GraphReport, SearchReport } from './graph/search-report.js';
export type { EntryRefusal, Improvement, PathRefusal, SearchEvent, SearchListener, Settings } from './graph/trace.js';
export type {
  PlannedConnection,
  NetConnection,
  NetReason,
  NoConnection,
  NoP2pReason,
  P2pConnection,
  ShmConnection,
} from './graph/transports/connection.js';
export type { Direction, RingConnections, Transports, TreeConnections } from './graph/transports/transports.js';
export {
  errorOf,
  type ExpectedRow,
  type ExpectedTable,
  expectTable,
  ranked,
  type TriedHypothesis,
  tryHypothesis,
} from './expect/expect.js';
export { type Hypothesis, hypothesesFor } from './expect/hypotheses.js';
export type { ResultRow, Results } from './expect/measured.js';
export { readResults } from './expect/results.js';
export { checkLog } from './log/verdict/check-log.js';
export { comparePlan, type PlanComparison, type PlanDifference, planFinding } from './log/checks/compare-plan.js';
export type { LogFinding, LogFindingCode, LogSeverity } from './log/checks/finding.js';
export type { LogPlace } from './log/lines/line.js';
export type { LoggedCommunicator, LoggedLink, LoggedProcess, LoggedRank, LogModel } from './log/job/model.js';
export { NcclLogReader } from './log/job/read-log.js';
export { type Verdict, verdictOf } from './log/verdict/verdict.js';
export type { MeasuredRow, MeasuredTable } from './log/job/table.js';
export { defaultEnvironment, type Environment, type Network } from './simulate/environment.js';
export { measuredPhysics, type Physics, type PhysicsName, withPhysics } from './simulate/physics.js';
export { timeShares, type TimeShare } from './simulate/shares.js';
export { type Timeline, timelineOf, timelineOfMessages, type TimelineLink, type TimelineSlice } from './simulate/timeline.js';
export type { MessagesOptions, Simulated, SimulateOptions, Simulator } from './simulate/simulate.js';
export type { PairMessage } from './schedule/pairs.js';
export { collectiveSchedule, messagesSchedule, type PairsWay, pairsWay, type ScheduledWay } from './schedule/from-plan.js';
export {
  type ScheduledConnection,
  type ConnectionKind,
  type Move,
  type MoveRange,
  type Schedule,
  type ScheduledCall,
  type ScheduledCollective,
  scheduledCollectives,
  type VerifiableCall,
  type VerifiableSchedule,
  type Worker,
} from './schedule/schedule.js';
export { readMscclXml } from './schedule/msccl.js';
export { readMscclppJson } from './schedule/mscclpp.js';
export { readProgram } from './schedule/read-program.js';
export { verifyProgram } from './schedule/verify-program.js';
export {
  type FarPlace,
  type OneSidedProgram,
  type OneSidedRank,
  type OneSidedStep,
  type ScheduleOptions,
  type SignalChannel,
} from './schedule/one-sided.js';
export {
  type AnyProgram,
  type ChunkPlace,
  type Program,
  type ProgramBlock,
  type ProgramRank,
  type ProgramStep,
  schedule,
} from './schedule/program.js';
export { type ScheduleFault, verifySchedule } from './schedule/verify.js';
export { buildSystem, type BuildOptions, type SystemNote } from './topology/build/build-system.js';
export { type LocalSystem, localSystems } from './topology/local-systems.js';
export { GdrMode, type GdrReason } from './topology/paths/gdr.js';
export { computePaths } from './topology/paths/compute-paths.js';
export type { Paths } from './topology/paths/paths.js';
export type { DriverFacts } from './topology/paths/reach.js';
export {
  CpuArch,
  CpuModel,
  type CpuNode,
  CpuVendor,
  type DevNode,
  type GpuNode,
  type Links,
  type NetNode,
  nodeName,
  type PciNode,
  type PlainNode,
  type PluginNode,
  type System,
  type SystemNode,
} from './topology/system.js';
export { LinkType, linkTypeName, NodeType, nodeTypeNames, PathType, pathTypeNames } from './topology/types.js';
export { type Completed, completeSkeleton, isSkeleton } from './topology/catalogue/complete.js';
export { cpuModels } from './topology/catalogue/cpus.js';
export { type GpuModel, gpuModels } from './topology/catalogue/gpus.js';
export { type GpuGroup, type Hardware, type NicGroup, parseHardware } from './topology/catalogue/hardware.js';
export { findMachine, type Machine, machine, machines } from './topology/catalogue/machines.js';
export { nicModels } from './topology/catalogue/nics.js';
export type { Limits, Origin } from './topology/catalogue/cloud-machines.js';
export { detectMachine, type DetectedMachine, type DetectOptions } from './topology/detect/detect-machine.js';
export type { MachineFiles, ProbedGpu } from './topology/detect/machine-files.js';
export { diagnose, type DiagnoseOptions } from './topology/doctor/diagnose.js';
export type { Finding, FindingCode, TopologyPlace, Severity } from './topology/doctor/finding.js';
export { describeNote, type XmlNote } from './topology/xml/notes.js';
export { type ParsedXml, parseXml } from './topology/xml/parse.js';
export type { XmlElement } from './topology/xml/tree.js';
export { validateTopology } from './topology/xml/validate.js';
export { writeXml } from './topology/xml/write.js';
export type { BandwidthLimit } from './tuning/model.js';
export { busFactor, type Choice, choose } from './tuning/choose.js';
export { type Flip, flips, type Way } from './tuning/flips.js';
export type { TuningInput } from './tuning/input.js';
export {
  type NcclAlgorithm,
  algorithms,
  type Collective,
  collectives,
  type DataTypeName,
  dataTypes,
  type OperatorName,
  operators,
  type Protocol,
  protocols,
} from './tuning/names.js';
export { type PredictOptions, predict, type Prediction } from './tuning/predict.js';
export { describeReason, type Reason } from './tuning/reasons.js';
export type { ByCandidate } from './tuning/threads.js';
export { type Model, tune, type Tuning } from './tuning/tune.js';
export { symmetricKernels, type SymmetricKernel } from './tuning/symmetric/kernels.js';
export {
  describeKernelReason,
  describeNoSymmetric,
  type KernelReason,
  type NoSymmetricReason,
} from './tuning/symmetric/reasons.js';
export { type CallWay, chooseWithWindows, type KernelPrediction, predictKernels } from './tuning/symmetric/symmetric.js';
export { type Windows, windowKinds } from './windows.js';
export type { ChangeableCluster, ClusterChange } from './plan/changed-cluster.js';
export { type Cluster, type ClusterHosts, prepareCluster, type PreparedHosts, type PrepareOptions } from './plan/cluster.js';
export { type ClusterFile, type ClusterFileMachine, parseClusterFile } from './plan/cluster-file.js';
export { type RuleEffect, ruleEffects, type Upgrade } from './plan/diff/attribute.js';
export { comparePlans, type Comparison, type Difference, type Section, type Side } from './plan/diff/compare.js';
export { type CostRow, costTable, costTableCsv, COST_TABLE_VERSION } from './plan/cost-table.js';
export { type ChosenWay, type Cost, costs } from './plan/diff/cost.js';
export { describeEffect, type EffectText } from './plan/diff/effect-text.js';
export type { Answer, Evidence, Line } from './explain/answer.js';
export type { Counterfactual } from './explain/counterfactual/counterfactual.js';
export { explain, type ExplainOptions, mainQuestions } from './explain/explain.js';
export { type Completion, completeQuestion, nearestQuestions, questionForms } from './explain/grammar/complete.js';
export { parseQuestions } from './explain/grammar/parse.js';
export type { Ask, Measured, PartialWay, Question, Term, VariableInQuestion } from './explain/grammar/question.js';
export type { Change } from './explain/help/changes.js';
export {
  answerHelp,
  type HelpInput,
  type HelpQuestion,
  type Progress,
  type Tried,
  tryChanges,
} from './explain/help/try-changes.js';
export type { Reference } from './explain/references.js';
export { type Situation, situationOf, type SituationOptions } from './explain/situation.js';
export { type Estimate, estimate } from './plan/estimate.js';
export {
  predictCollectives,
  predictMessages,
  type PredictedCollective,
  type PredictedRow,
  simulatorOf,
} from './plan/prediction.js';
export type { Database } from './readers/nsight.js';
export type { ReplayCluster } from './replay/costs.js';
export type { JobCall } from './replay/job-call.js';
export { TraceReader } from './replay/read-traces.js';
export {
  type ComparedCall,
  type ComparedRank,
  type MeasuredCall,
  type MeasuredJob,
  measureJob,
  type Replay,
  replayJob,
  tracedVersion,
} from './replay/replay.js';
export type { RankProgram } from './replay/program.js';
export type { ReplayedCall } from './replay/run.js';
export type { Interval as ReplayInterval, RankCall, RankMessage, RankTrace, TraceStep } from './replay/trace.js';
export { applyOverrides, type Overrides } from './plan/overrides.js';
export { type ConnectionSummary, transportsOf } from './plan/overview/connections.js';
export { forecast, type Forecast, type ForecastRow } from './plan/overview/forecast.js';
export type { LinkKind, LinkLoad } from './plan/overview/fullest-link.js';
export { type Overview, overviewOf, type OverviewInput } from './plan/overview/overview.js';
export { type Plan, plan, type PlannedHosts, type PlanOptions, planPrepared } from './plan/plan.js';
export { planFromJson, planToJson } from './plan/plan-json.js';
export { planForRank, type RankChannel, type RankNvls, type RankPlan } from './plan/rank-plan.js';
export { overviewSvg } from '../view/choice/charts.js';
export type { Mark, Picture } from '../view/draw/picture.js';
export { svgFile } from '../view/draw/svg.js';
export { type Box, draw, type Drawing, type Wire } from '../view/machine/boxes.js';
export { machinePicture, type MachinePictureOptions } from '../view/machine/picture.js';
export { matrixText, treeText } from '../view/machine/text.js';
export { overviewHtml } from '../view/page/plan-page.js';
