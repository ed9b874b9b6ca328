/**
 * A long-running process switches from the JSON gateway to gRPC: once the
 * gateway has responded, a gRPC connection is opened in the background, and
 * requests use it while it is open (docs/decisions/grpc-upgrade.md). No request
 * waits for it. If it cannot be opened, or is lost, requests use the gateway.
 */
import type { Endpoint } from "./endpoints.ts";
import type { GrpcTransport } from "./grpc.ts";
import type { Transport } from "./transport.ts";

const LIMIT_MILLISECONDS = 5_000;

export class GrpcUpgrade {
  private grpc: GrpcTransport | undefined;
  /** Endpoints whose gRPC connection is being opened or cannot be used. */
  private readonly gatewayOnly = new Set<Endpoint>();

  constructor(
    private readonly open: () => Promise<GrpcTransport>,
    private readonly stop: AbortSignal,
  ) {}

  /** `undefined`: use the gateway. */
  transportFor(endpoint: Endpoint): Transport | undefined {
    return !this.gatewayOnly.has(endpoint) && this.grpc?.isConnected(endpoint.url) ? this.grpc : undefined;
  }

  /** The endpoint speaks HTTP/2, but not gRPC. */
  disable(endpoint: Endpoint): void {
    this.gatewayOnly.add(endpoint);
  }

  /** Call this whenever the endpoint has responded. */
  start(endpoint: Endpoint): void {
    if (this.gatewayOnly.has(endpoint) || this.transportFor(endpoint) !== undefined) return;
    this.gatewayOnly.add(endpoint);
    this.connect(endpoint).then(
      () => this.gatewayOnly.delete(endpoint),
      () => {},
    );
  }

  private async connect({ url }: Endpoint): Promise<void> {
    this.grpc = await this.open();
    await this.grpc.connect(url, AbortSignal.any([AbortSignal.timeout(LIMIT_MILLISECONDS), this.stop]));
  }
}
