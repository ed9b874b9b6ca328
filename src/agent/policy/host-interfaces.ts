/**
 * Which interfaces of the host have which addresses, while a host endpoint of this node expects an address instead of
 * naming its interface. Otherwise nothing is read, and the agent is not woken when links come and go.
 */
import { identity } from "../../identity.ts";
import type { SocketOpener } from "../../linux/netlink-socket.ts";
import { InterfaceMonitor } from "../../linux/rtnetlink/interface-monitor.ts";
import type { HostInterface } from "../../policy/host-interface.ts";

export class HostInterfaces {
  private listening: AbortController | undefined;
  private readonly failure = Promise.withResolvers<never>();

  /** `changed` is called with all interfaces after each change, while they are followed. */
  constructor(
    private readonly kernel: SocketOpener,
    private readonly changed: (interfaces: readonly HostInterface[]) => void,
  ) {}

  /** Returns the interfaces if they are followed from now on. */
  follow(isNeeded: boolean): readonly HostInterface[] | undefined {
    if (isNeeded === (this.listening !== undefined)) return undefined;
    this.listening?.abort();
    this.listening = isNeeded ? new AbortController() : undefined;
    if (this.listening === undefined) return undefined;
    const monitor = new InterfaceMonitor(this.kernel, isOfHost);
    const interfaces = monitor.read();
    void this.listen(monitor, interfaces, this.listening.signal);
    return interfaces;
  }

  /** Resolves when the signal is aborted. Rejects if the interfaces cannot be followed any more. */
  async run(signal: AbortSignal): Promise<void> {
    const aborted = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => aborted.resolve(), { once: true });
    if (!signal.aborted) await Promise.race([aborted.promise, this.failure.promise]);
    this.follow(false);
  }

  private async listen(monitor: InterfaceMonitor, first: readonly HostInterface[], signal: AbortSignal): Promise<void> {
    let last = first;
    try {
      for await (const _ of monitor.changes(signal)) {
        const now = monitor.read();
        if (signal.aborted || Bun.deepEquals(now, last)) continue;
        last = now;
        this.changed(now);
      }
    } catch (failure) {
      this.failure.reject(failure);
    } finally {
      monitor.close();
    }
  }
}

function isOfHost(interfaceName: string): boolean {
  return !interfaceName.startsWith(identity.interfacePrefix);
}
