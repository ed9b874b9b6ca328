/**
 * Which of several replicas writes: the holder of a Lease. It renews the lease, and stops writing before others may
 * consider it expired; whoever does not hold it stays a warm standby.
 */
export interface Leadership {
  /** May write now. */
  isLeading(): boolean;
  /** Resolves as soon as it may write, or the signal is aborted. */
  whenLeading(signal: AbortSignal): Promise<void>;
}
