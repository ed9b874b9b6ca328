/**
 * The certificates that the etcd client presents and trusts. A CA file may
 * contain several root certificates: all of them are trusted.
 */
import { PluginError } from "../../errors.ts";
import { quoted } from "../../quote.ts";

export interface TlsFiles {
  readonly ca?: string[];
  readonly cert?: string;
  readonly key?: string;
}

export interface TlsPaths {
  readonly keyFile?: string;
  readonly certFile?: string;
  readonly caCertFile?: string;
  /** Instead of files: PEM texts. */
  readonly inline?: { readonly key?: string; readonly cert?: string; readonly caCert?: string };
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

export async function readTlsFiles({ keyFile, certFile, caCertFile, inline = {} }: TlsPaths): Promise<TlsFiles> {
  const [ofKey, ofCert, ofCa] = await Promise.all([keyFile, certFile, caCertFile].map(readOptional));
  const [key, cert, ca] = [inline.key ?? ofKey, inline.cert ?? ofCert, inline.caCert ?? ofCa];
  return {
    ...(key === undefined ? {} : { key }),
    ...(cert === undefined ? {} : { cert }),
    ...(ca === undefined ? {} : { ca: splitCertificates(ca, caCertFile ?? "etcdCACert") }),
  };
}

async function readOptional(path: string | undefined): Promise<string | undefined> {
  if (path === undefined || path === "") return undefined;
  try {
    return await Bun.file(path).text();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new PluginError("io-failure", `Cannot read the etcd certificate file ${quoted(path)}: ${reason}`, { cause });
  }
}

function splitCertificates(text: string, path: string): string[] {
  const certificates = text.match(CERTIFICATE) ?? [];
  if (certificates.length === 0) {
    throw new PluginError(
      "io-failure",
      `Cannot use the etcd CA file ${quoted(path)}: it does not contain a PEM certificate`,
    );
  }
  return certificates;
}
