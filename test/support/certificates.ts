/** Certificates made by openssl: roots, servers on loopback, clients. */
import { join } from "node:path";

export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** A kept cluster (`make cluster`) runs for days. */
const DAYS = 90;

export function makeRoot(directory: string, name: string): Certificate {
  const { cert, key } = pathsOf(directory, name);
  openssl(["req", "-x509", ...NEW_KEY, "-keyout", key, "-out", cert, "-days", String(DAYS), "-subj", `/O=${name}`]);
  return { cert, key };
}

interface Holder {
  /** As openssl writes it: `/O=group/CN=user`. */
  readonly subject?: string;
  /** Additional names: `IP:10.0.0.1`, `DNS:node`, `URI:spiffe://cluster.local/ns/shop/sa/frontend`. */
  readonly names?: readonly string[];
  /** How long it is valid; one with a negative number has expired. */
  readonly days?: number;
}

/** A certificate for 127.0.0.1 and localhost, valid for servers and clients. */
export function makeSigned(directory: string, name: string, root: Certificate, holder: Holder = {}): Certificate {
  const { cert, key } = pathsOf(directory, name);
  const request = join(directory, `${name}.csr`);
  const names = ["IP:127.0.0.1", "DNS:localhost", ...(holder.names ?? [])];
  const extensions = [`subjectAltName=${names.join(",")}`, "extendedKeyUsage=serverAuth,clientAuth"];
  openssl([
    "req",
    ...NEW_KEY,
    "-keyout",
    key,
    "-out",
    request,
    "-subj",
    holder.subject ?? `/O=${name}`,
    ...extensions.flatMap((each) => ["-addext", each]),
  ]);
  openssl([
    "x509",
    "-req",
    "-in",
    request,
    "-CA",
    root.cert,
    "-CAkey",
    root.key,
    "-CAcreateserial",
    "-out",
    cert,
    "-days",
    String(holder.days ?? DAYS),
    "-copy_extensions",
    "copyall",
  ]);
  return { cert, key };
}

const NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

function pathsOf(directory: string, name: string): Certificate {
  return { cert: join(directory, `${name}.crt`), key: join(directory, `${name}.key`) };
}

function openssl(args: readonly string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(["openssl", ...args]);
  if (exitCode !== 0) throw new Error(`openssl ${args.join(" ")}: ${stderr}`);
}
