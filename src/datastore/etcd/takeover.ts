/**
 * Where a process stays, gRPC takes over from the gateway: once the gateway has
 * answered, a connection is made beside it, and requests go there as long as it
 * stands (docs/decisions/grpc-takes-over.md). Nobody waits for it, and where it
 * cannot be had, or is lost, the gateway serves.
 */
import type { Endpoint } from "./endpoints.ts";
import type { GrpcTransport } from "./grpc.ts";
import type { Transport } from "./transport.ts";

const LIMIT_MILLISECONDS = 5_000;

export class Takeover {
  private grpc: GrpcTransport | undefined;
  /** Those where a connection is being made, or of no use. */
  private readonly leftToGateway = new Set<Endpoint>();

  constructor(
    private readonly open: () => Promise<GrpcTransport>,
    private readonly stop: AbortSignal,
  ) {}

  /** `undefined`: the gateway is to be asked. */
  transportFor(endpoint: Endpoint): Transport | undefined {
    return !this.leftToGateway.has(endpoint) && this.grpc?.isConnected(endpoint.url) ? this.grpc : undefined;
  }

  /** HTTP/2 is spoken there, but gRPC is not. */
  renounce(endpoint: Endpoint): void {
    this.leftToGateway.add(endpoint);
  }

  /** To be called whenever the endpoint has answered. */
  begin(endpoint: Endpoint): void {
    if (this.leftToGateway.has(endpoint) || this.transportFor(endpoint) !== undefined) return;
    this.leftToGateway.add(endpoint);
    this.connect(endpoint).then(
      () => this.leftToGateway.delete(endpoint),
      () => {},
    );
  }

  private async connect({ url }: Endpoint): Promise<void> {
    this.grpc = await this.open();
    await this.grpc.connect(url, AbortSignal.any([AbortSignal.timeout(LIMIT_MILLISECONDS), this.stop]));
  }
}
