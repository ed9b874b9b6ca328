/**
 * How long a sidecar that is told to stop goes on deciding: the proxy, which is told at the same time, finishes its
 * requests and may still ask.
 */
export interface DrainOptions {
  /** How many connections the proxy has. */
  connections(): number;
  wait(milliseconds: number): Promise<void>;
}

/** Below the 30 seconds after which the kubelet kills. */
const CONNECTED_MILLISECONDS = 25_000;
/** A proxy that is not connected may connect for a request: the mesh's drains for 5 seconds by default. */
const UNCONNECTED_MILLISECONDS = 6_000;
const LOOK_MILLISECONDS = 100;

/** Resolves when the proxy is gone, or has had its time. */
export async function proxyGone({ connections, wait }: DrainOptions): Promise<void> {
  let wasConnected = false;
  for (let waited = 0; ; waited += LOOK_MILLISECONDS) {
    const isConnected = connections() > 0;
    if (wasConnected && !isConnected) return;
    wasConnected ||= isConnected;
    if (waited >= (wasConnected ? CONNECTED_MILLISECONDS : UNCONNECTED_MILLISECONDS)) return;
    await wait(LOOK_MILLISECONDS);
  }
}
