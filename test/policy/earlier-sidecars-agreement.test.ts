/**
 * A real sidecar of an earlier release, fed with the policies of random clusters, decides as the policies say: the slow judge
 * reads the resources themselves. That release reads paths as they are, and accepts every trust domain: only requests that both
 * read in the same way are compared.
 */
import { expect } from "bun:test";
import { existsSync, mkdirSync } from "node:fs";
import { connect } from "node:http2";
import { connect as connectSocket } from "node:net";
import { join } from "node:path";
import fc from "fast-check";
import { PodSocket } from "../../src/alp/feed/pod-socket.ts";
import type { FedConnection } from "../../src/alp/feed/sidecar-connection.ts";
import type { IncomingRequest } from "../../src/alp/judge/request-judge.ts";
import { type SidecarState, SidecarStates } from "../../src/alp/state/sidecar-states.ts";
import { encodeMessage } from "../../src/grpc/message-frames.ts";
import { formatAddress } from "../../src/ip/address.ts";
import { ENDPOINT } from "../../src/model/kinds.ts";
import type { WorkloadEndpoint } from "../../src/model/workload-endpoint.ts";
import { PolicyCompiler } from "../../src/policy/compile/compiler.ts";
import type { PolicyResources } from "../../src/policy/judge/resources.ts";
import { partIfBuilt } from "../parts/build.ts";
import { checkRequest } from "../support/check-request.ts";
import { startDaemon } from "../support/daemon.ts";
import { judgeRequest } from "../support/judge-request.ts";
import { testNeeding } from "../support/needs.ts";
import { changesBetween, NO_RESOURCES } from "../support/policy-changes.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { decodeMessage } from "../support/protobuf.ts";
import { histories, LOCAL_NODE } from "../support/random-cluster.ts";
import { type RequestPolicies, randomRequests, requestPolicies, requestTo } from "../support/random-requests.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const { runs, atLeast } = proofSize({ everyDay: { runs: 40, atLeast: 100 }, soak: { runs: 1_000, atLeast: 8_000 } });
const PER_STATE = 40;
const part = partIfBuilt("former-dikastes");
const test = testNeeding("missing" in part ? part.missing : undefined);

test("a sidecar of an earlier release and the slow judge decide the same, after any history of updates", async () => {
  await using site = await openSite("path" in part ? part.path : "");
  const seen = { allow: 0, deny: 0 };
  await fc.assert(
    fc.asyncProperty(
      histories,
      fc.array(randomRequests, { minLength: PER_STATE, maxLength: PER_STATE }),
      fc.tuple(requestPolicies, requestPolicies),
      async (history, questions, policies) => {
        const compiler = new PolicyCompiler({ node: LOCAL_NODE, hasServices: true });
        const states = new SidecarStates(compiler);
        let before: PolicyResources = NO_RESOURCES;
        for (const [index, resources] of history.entries()) {
          const cluster = withPolicies(resources, policies[index % 2]);
          compiler.update(changesBetween(before, cluster));
          before = cluster;
          for (const endpoint of cluster.endpoints.filter(({ spec }) => spec.node === LOCAL_NODE)) {
            const state = states.stateOf(keyOf(endpoint));
            if (state === undefined) throw new Error(`no state of ${keyOf(endpoint)}`);
            await site.feed(state);
            const asked = questions
              .map((question) => requestTo(endpoint, question))
              .flatMap((request) => questionOf(request, state) ?? []);
            const expected = asked.map(({ request }) => {
              const { verdict } = judgeRequest(request, endpoint, { resources: cluster, trustDomain: "*" });
              seen[verdict] += 1;
              return { request, verdict };
            });
            await site.untilSame(asked, expected);
          }
        }
      },
    ),
    { numRuns: runs, endOnFailure: true },
  );
  expect(Math.min(seen.allow, seen.deny)).toBeGreaterThanOrEqual(atLeast);
});

interface Question {
  readonly request: IncomingRequest;
  readonly bytes: Uint8Array;
}

const PLAIN_PATH = /^(?:\/[a-z]+)*\/?$/;
const SPIFFE = /^spiffe:\/\/[a-z.]+\/ns\/[a-z]+\/sa\/[a-z]+$/;

/** `undefined` if the earlier release reads it in another way. */
function questionOf(request: IncomingRequest, { addresses }: SidecarState): Question | undefined {
  const { sourcePort, principal, destinationPort, http } = request;
  const source = formatAddress(request.source);
  const destination = addresses.find((address) => address.includes(":") === source.includes(":"));
  const isReadAlike =
    http !== undefined &&
    http.path !== "" &&
    PLAIN_PATH.test(http.path) &&
    (principal === undefined || SPIFFE.test(principal)) &&
    !source.startsWith("::ffff:");
  if (!isReadAlike || destination === undefined) return undefined;
  const bytes = checkRequest({
    ...{ source, destination, destinationPort, http },
    ...(sourcePort === undefined ? {} : { sourcePort }),
    ...(principal === undefined ? {} : { principal }),
  });
  return { request, bytes };
}

interface Verdict {
  readonly request: IncomingRequest;
  readonly verdict: string;
}

interface Site extends AsyncDisposable {
  feed(state: SidecarState): Promise<void>;
  /** The sidecar says nothing when it has applied what it has read. */
  untilSame(asked: readonly Question[], expected: readonly Verdict[]): Promise<void>;
}

async function openSite(program: string): Promise<Site> {
  const undo = new AsyncDisposableStack();
  const directory = temporaryDirectory("earlier");
  undo.defer(directory.remove);
  const volume = { uid: "uid", namespace: "red", pod: "pod", directory: join(directory.path, "mount", "uid") };
  mkdirSync(volume.directory, { recursive: true });
  const greeted = Promise.withResolvers<FedConnection>();
  const refused: string[] = [];
  let logOf = () => "";
  let applied = Promise.withResolvers<void>();
  const socket = new PodSocket(volume, {
    version: "2.0.0",
    elapsed: () => performance.now(),
    refused: (reason) => refused.push(reason),
    greeted: greeted.resolve,
    applied: () => applied.resolve(),
    closed: () => applied.reject(new Error(`closed: ${refused.join()}\n${logOf()}`)),
    report: (problem) => refused.push(problem),
  });
  undo.defer(() => socket.close());
  socket.listen();
  const authorizer = join(directory.path, "authorizer.sock");
  const daemon = startDaemon({
    command: [program, "server", "-l", authorizer, "-d", join(volume.directory, "socket")],
    logFile: join(directory.path, "dikastes.log"),
    async ready() {
      if (!existsSync(authorizer)) throw new Error("no socket");
    },
  });
  undo.defer(daemon.kill);
  logOf = daemon.log;
  await daemon.ready();
  const connection = await greeted.promise;
  const session = connect("http://localhost", { createConnection: () => connectSocket(authorizer) });
  undo.defer(() => session.close());
  const decide = ({ bytes }: Question) => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const path = "/envoy.service.auth.v3.Authorization/Check";
    const stream = session.request({ ":method": "POST", ":path": path, "content-type": "application/grpc" });
    const pieces: Uint8Array[] = [];
    stream.on("data", (piece: Uint8Array) => pieces.push(piece));
    stream.on("error", reject);
    stream.on("end", () => {
      if (pieces.length === 0) return reject(new Error(`no decision\n${daemon.log()}`));
      const status = decodeMessage(Buffer.concat(pieces).subarray(5)).message(1).number(1);
      resolve(status === 0 ? "allow" : "deny");
    });
    stream.end(encodeMessage(bytes));
    return promise;
  };
  return {
    async feed(state) {
      applied = Promise.withResolvers();
      // Nobody waits for it if there is nothing to send; it is closed at the end.
      applied.promise.catch(() => {});
      if (connection.update(state)) await applied.promise;
    },
    async untilSame(asked, expected) {
      let verdicts: readonly Verdict[] = [];
      const isSame = async () => {
        verdicts = await Promise.all(
          asked.map(async (each) => ({ request: each.request, verdict: await decide(each) })),
        );
        return Bun.deepEquals(verdicts, expected);
      };
      await pollUntil(isSame, "the decisions", 20_000).catch(() => expect(verdicts).toEqual(expected));
    },
    [Symbol.asyncDispose]: () => undo.disposeAsync(),
  };
}

function withPolicies(cluster: PolicyResources, more: RequestPolicies | undefined): PolicyResources {
  return {
    ...cluster,
    networkPolicies: [...cluster.networkPolicies, ...(more?.networkPolicies ?? [])],
    globalNetworkPolicies: [...cluster.globalNetworkPolicies, ...(more?.globalNetworkPolicies ?? [])],
  };
}

function keyOf({ metadata: { name, namespace = "" } }: WorkloadEndpoint): string {
  return ENDPOINT.key({ name, namespace });
}
