/**
 * Grace periods, in milliseconds: how long a rank that knows of an end still waits for its reason, or for what was on its way.
 * Too short, it names a consequence in place of the cause; too long, calls of other ranks end late.
 */
export const graceMs = {
  // The reason of an end, which the bootstrap network brings.
  endReason: 1000, // a rank gave up in a call over the bootstrap network
  brokenConnection: 2000, // a connection broke without a goodbye: the event loop brings the reason
  brokenWhileBlocked: 200, // the same while this rank blocks, so that its event loop does not turn
  failedDial: 5000, // a connection failed while it was being made
  engineThread: 300, // the same for an engine thread: its rank's thread reports the reason, or blocks
  engineThreadSends: 1000, // an engine thread sends the reason to others before its rank ends the communicator
  // Messages that were sent before an end.
  lastMessages: 200, // after a notice of a loss, the lost rank's own connection delivers its last messages
  goodbyeAfterRefusal: 500, // a rank does not listen at its address any more, but its goodbye may arrive
  lastDial: 200, // a rank has gone, but the connection that it dialled before may arrive
  messageConnections: 200, // a rank has failed, but connections for messages may still be made
  leftInGrow: 1000, // a rank has left during grow(): it may have finished first
  engineThreadEnds: 300, // the engine thread of a rank that ends closes its descriptors
  rankAfterEngineThread: 1000, // the thread of a rank throws the error with which its engine thread gave up
  threadGoodbye: 1000, // a leaving rank's idle engine threads report that to the others
  deliveryAfterClose: 600_000, // a live peer reads what was posted before close(): the default time limit of a call
  deliveryAfterAbort: 1000, // the same after abort()
  goodbye: 10_000, // the other side receives a goodbye of the bootstrap network, and everything before it
  unreadData: 500, // the other side reads what was sent before a connection is closed without a goodbye
  deliveryOfFew: 200, // the same for few bytes over UCX, which the other side's card holds if its process does not read
  // When to check for an end.
  lateDial: 100, // a connection that is being made is late
  lateMessage: 500, // the other side of a message is late
  presence: 20, // interval of checks that the ranks of an out-of-band call can still arrive
  progressAfterFailure: 100, // another rank has failed: interval of checks that calls still progress
  // Verdicts that ranks share.
  rootAnswer: 1000, // the root's answer after its connection has ended
  rootVerdict: 400, // the root's verdict after this rank's limit: only it names the missing ranks
  rootVerdictAhead: 500, // the root's verdict before a rank's limit, at most: it takes time to arrive
  rootStays: 2000, // the root stays beyond the ranks' limits, so that late ranks get its verdict
  rootSettles: 2000, // after a conflict between ranks, one more rank may check in
  newsOfOthersFirst: 200, // ranks of other processes get bad news before this one's, at most
  waitReports: 2000, // longest limit by which reports are judged: without one for a quarter of it, a rank does not wait
  occupant: 2000, // the process that listens at the root's address answers
  busyPort: 5000, // a port is in use without an answer: by a connection, or by a root that has just closed
  coordinator: 1000, // ranks that shrink wait longer than their coordinator, so that all name the same ranks
} as const;
