/** The requests of the product's etcd client on their way to the simulated etcd. */
import { failureOfConnection } from "../../src/datastore/etcd/failure.ts";
import {
  type Call,
  FROM_KEY_ON,
  type Transaction,
  type TransactionResponse,
  type Transport,
  type WatchRequest,
  type WatchResponse,
} from "../../src/datastore/etcd/transport.ts";
import { connectionError } from "../faults/connection-error.ts";
import type { FaultyServer } from "../faults/faulty-server.ts";
import { type FaultyNetwork, RequestFailed } from "../faults/network.ts";
import type { FaultyStream } from "../faults/stream.ts";
import { untilAborted } from "../faults/until-aborted.ts";
import type { SimulatedProcess } from "../schedule/process.ts";
import type { EtcdVersions } from "./etcd-versions.ts";

/** What etcd does with a request that arrives. */
export interface EtcdServer extends FaultyServer {
  readonly versions: Pick<EtcdVersions, "transact">;
  startWatch(request: WatchRequest, stream: FaultyStream<WatchResponse>): void;
}

interface TransportMeans {
  readonly process: SimulatedProcess;
  readonly place: string;
  readonly network: FaultyNetwork;
}

export class EtcdTransport implements Transport {
  constructor(
    private readonly server: EtcdServer,
    private readonly means: TransportMeans,
  ) {}

  transact(call: Call, transaction: Transaction): Promise<TransactionResponse> {
    const writes = transaction.success.some(({ kind }) => kind !== "range");
    const keys = transaction.success.map(({ key }) => key);
    // The client asks the member of a silent watch for its revision only.
    const purpose = keys.every((key) => key === FROM_KEY_ON) ? "probe" : undefined;
    this.server.traffic.count(this.means, { kind: writes ? "write" : "read", purpose, what: keys.join(" ") });
    return this.send(() => this.server.versions.transact(transaction), call);
  }

  async *watch(call: Call, request: WatchRequest): AsyncGenerator<WatchResponse> {
    const { signal } = call;
    const { process, place } = this.means;
    this.server.traffic.count(this.means, { kind: "read", purpose: "watch", what: request.key });
    const stream = this.server.openStream<WatchResponse>(process, place);
    try {
      await this.send(() => this.server.startWatch(request, stream), call);
      yield* stream.receive(signal);
      if (signal.aborted) throw failureOfConnection(connectionError(new RequestFailed("silence", "unknown")));
    } finally {
      stream.close();
    }
  }

  authenticate(): Promise<string> {
    throw new Error("the simulated etcd has no users");
  }

  close(): void {}

  private async send<Answer>(action: () => Answer, { signal, heard }: Call): Promise<Answer> {
    const { process, place, network } = this.means;
    const respond = () => ({ answer: action(), date: this.server.date });
    try {
      const { answer, date } = await untilAborted(network.request(process, place, this.server, respond), [signal]);
      heard?.(date);
      return answer;
    } catch (failure) {
      throw failure instanceof RequestFailed ? failureOfConnection(connectionError(failure)) : failure;
    }
  }
}
