/** The certificate that the console shows, from files that are renewed while it runs. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { PluginError } from "../../errors.ts";
import { ChangingFile } from "../../kube/changing-file.ts";
import { quoted } from "../../quote.ts";
import { namesIn } from "../../tls/x509.ts";

export interface ServedCertificate {
  /** PEM, as the key. */
  readonly cert: string;
  readonly key: string;
  /** What it is for, as the `Host` of a request has it: names in lower case, IPv6 addresses in brackets. No patterns. */
  readonly names: ReadonlySet<string>;
}

export class CertificateFiles {
  private readonly certificate: ChangingFile;
  private readonly key: ChangingFile;
  private known: ServedCertificate | undefined;

  constructor(certificateFile: string, keyFile: string) {
    this.certificate = new ChangingFile(certificateFile, "the file with the certificate of the console");
    this.key = new ChangingFile(keyFile, "the file with the key of the console");
  }

  /** The same value until the files change. Throws while they do not belong together, as when they are being replaced. */
  async read(): Promise<ServedCertificate> {
    const [cert, key] = await Promise.all([this.certificate.read(), this.key.read()]);
    if (this.known?.cert === cert && this.known.key === key) return this.known;
    const problem = problemOf(cert, key);
    if (problem !== undefined) {
      const files = `${quoted(this.certificate.path)} and ${quoted(this.key.path)}`;
      throw new PluginError("config-invalid", `Cannot use the certificate of the console in ${files}: ${problem}`);
    }
    this.known = { cert, key, names: new Set(namesIn(cert).map(hostOf)) };
    return this.known;
  }
}

function hostOf(name: string): string {
  return name.includes(":") ? `[${name}]` : name.toLowerCase();
}

/** Without a word of the key. */
function problemOf(cert: string, key: string): string | undefined {
  try {
    if (new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) return undefined;
    return "the key is that of another certificate";
  } catch {
    return "they are not a certificate and its key in PEM";
  }
}
