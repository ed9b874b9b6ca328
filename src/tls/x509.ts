/**
 * Makes X.509 certificates: an authority of its own, and certificates for servers that it signs. ECDSA with P-256 and SHA-256;
 * everything is DER (ITU-T X.690), as RFC 5280 orders it.
 */
import { createHash, createPrivateKey, generateKeyPairSync, randomBytes, sign, X509Certificate } from "node:crypto";
import { addressBytes, formatAddress, parseAddress } from "../ip/address.ts";

/** PEM. */
export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

export interface Validity {
  readonly from: Date;
  readonly until: Date;
}

export function makeAuthority(name: string, validity: Validity): KeyPair {
  const keys = newKeys();
  const extensions = [
    extension(OID.basicConstraints, sequence(BOOLEAN_TRUE, integer(Uint8Array.of(0))), "critical"),
    // keyCertSign and cRLSign.
    extension(OID.keyUsage, element(0x03, Uint8Array.of(1, 0x06)), "critical"),
    extension(OID.subjectKeyIdentifier, element(0x04, keyIdentifier(keys.publicKey))),
  ];
  return certified(keys, { subject: name, issuer: name, validity, extensions, signingKey: keys.key });
}

/** Of a server; the first of them is its common name, of at most 64 characters. */
export type ServerNames = readonly [string, ...string[]];

/** `names`: host names and addresses of the server. Throws if the authority is not one that `makeAuthority` made. */
export function makeServerCertificate(
  authority: KeyPair,
  { names, validity }: { readonly names: ServerNames; readonly validity: Validity },
): KeyPair {
  const keys = newKeys();
  const issuer = new X509Certificate(authority.certificate);
  const issuerKey = new Uint8Array(issuer.publicKey.export({ type: "spki", format: "der" }));
  const extensions = [
    extension(OID.basicConstraints, sequence(), "critical"),
    // digitalSignature.
    extension(OID.keyUsage, element(0x03, Uint8Array.of(7, 0x80)), "critical"),
    extension(OID.extendedKeyUsage, sequence(OID.serverAuth)),
    extension(OID.authorityKeyIdentifier, sequence(element(0x80, keyIdentifier(issuerKey)))),
    extension(OID.subjectAlternativeName, sequence(...names.map(generalName))),
  ];
  const issuerName = /^CN=(.*)$/m.exec(issuer.subject)?.[1];
  if (issuerName === undefined)
    throw new Error(`the authority's subject is "${issuer.subject}", without a common name`);
  return certified(keys, {
    ...{ subject: names[0], issuer: issuerName, validity, extensions },
    signingKey: authority.key,
  });
}

/** Host names and addresses that a certificate is for; addresses as `formatAddress` writes them. */
export function namesIn(certificate: string): readonly string[] {
  const { subjectAltName = "" } = new X509Certificate(certificate);
  return subjectAltName.split(", ").flatMap((each) => {
    const [, kind, name = ""] = /^(DNS|IP Address):(.*)$/.exec(each) ?? [];
    if (kind === undefined) return [];
    const address = kind === "DNS" ? undefined : parseAddress(name);
    return [address === undefined ? name : formatAddress(address)];
  });
}

/** RFC 5280, 4.2.1.6: an address is its bytes. */
function generalName(name: string): Uint8Array {
  const address = parseAddress(name);
  return address === undefined ? element(0x82, ascii(name)) : element(0x87, addressBytes(address));
}

interface Keys {
  /** SubjectPublicKeyInfo. */
  readonly publicKey: Uint8Array;
  readonly key: string;
}

function newKeys(): Keys {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return {
    publicKey: new Uint8Array(publicKey.export({ type: "spki", format: "der" })),
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}

interface ToCertify {
  /** Common names. */
  readonly subject: string;
  readonly issuer: string;
  readonly validity: Validity;
  readonly extensions: readonly Uint8Array[];
  readonly signingKey: string;
}

function certified(
  { publicKey, key }: Keys,
  { subject, issuer, validity, extensions, signingKey }: ToCertify,
): KeyPair {
  const algorithm = sequence(OID.ecdsaWithSha256);
  // Positive, and of the same length each time.
  const serial = randomBytes(16);
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40;
  const toSign = sequence(
    element(0xa0, integer(Uint8Array.of(2))),
    integer(serial),
    algorithm,
    commonName(issuer),
    sequence(time(validity.from), time(validity.until)),
    commonName(subject),
    publicKey,
    element(0xa3, sequence(...extensions)),
  );
  const signature = new Uint8Array(sign("sha256", toSign, createPrivateKey(signingKey)));
  const der = sequence(toSign, algorithm, element(0x03, joined([Uint8Array.of(0), signature])));
  return { certificate: pem("CERTIFICATE", der), key };
}

const OID = {
  ecdsaWithSha256: objectIdentifier([0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02]),
  commonName: objectIdentifier([0x55, 0x04, 0x03]),
  subjectKeyIdentifier: objectIdentifier([0x55, 0x1d, 0x0e]),
  keyUsage: objectIdentifier([0x55, 0x1d, 0x0f]),
  subjectAlternativeName: objectIdentifier([0x55, 0x1d, 0x11]),
  basicConstraints: objectIdentifier([0x55, 0x1d, 0x13]),
  authorityKeyIdentifier: objectIdentifier([0x55, 0x1d, 0x23]),
  extendedKeyUsage: objectIdentifier([0x55, 0x1d, 0x25]),
  serverAuth: objectIdentifier([0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01]),
} as const;

const BOOLEAN_TRUE = Uint8Array.of(0x01, 0x01, 0xff);

function extension(identifier: Uint8Array, value: Uint8Array, isCritical?: "critical"): Uint8Array {
  const critical = isCritical === undefined ? [] : [BOOLEAN_TRUE];
  return sequence(identifier, ...critical, element(0x04, value));
}

function commonName(name: string): Uint8Array {
  return sequence(element(0x31, sequence(OID.commonName, element(0x0c, new TextEncoder().encode(name)))));
}

/** As RFC 5280 asks for: GeneralizedTime only from 2050 on. */
function time(moment: Date): Uint8Array {
  const digits = moment.toISOString().replaceAll(/[-:T]|\.\d+/g, "");
  return moment.getUTCFullYear() < 2050 ? element(0x17, ascii(digits.slice(2))) : element(0x18, ascii(digits));
}

/** RFC 5280, 4.2.1.2: the SHA-1 of the bits of the key, which are the last 65 bytes for P-256. */
function keyIdentifier(publicKey: Uint8Array): Uint8Array {
  return new Uint8Array(createHash("sha1").update(publicKey.subarray(-65)).digest());
}

function objectIdentifier(bytes: readonly number[]): Uint8Array {
  return element(0x06, Uint8Array.from(bytes));
}

function integer(bytes: Uint8Array): Uint8Array {
  return element(0x02, bytes);
}

function sequence(...parts: readonly Uint8Array[]): Uint8Array {
  return element(0x30, joined(parts));
}

function element(tag: number, content: Uint8Array): Uint8Array {
  return joined([Uint8Array.of(tag, ...lengthOf(content.length)), content]);
}

function lengthOf(length: number): readonly number[] {
  if (length < 0x80) return [length];
  return length < 0x100 ? [0x81, length] : [0x82, length >>> 8, length & 0xff];
}

function ascii(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts));
}

function pem(title: string, der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${title}-----`, ...lines, `-----END ${title}-----`, ""].join("\n");
}
