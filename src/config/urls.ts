/** Decodes the addresses in config values: URLs, host:port, domain names. */

export function isHttpUrl(text: string): boolean {
  const url = text.includes("://") ? URL.parse(text) : null;
  return url !== null && (url.protocol === "https:" || url.protocol === "http:") && url.hostname !== "";
}

/** `http://a:2379, http://b:2379/` -> the two URLs, trimmed and without a trailing slash. */
export function splitEndpoints(text: string): readonly string[] {
  const endpoints: string[] = [];
  for (const endpoint of text.split(",")) {
    const trimmed = endpoint.trim();
    endpoints.push(trimmed.endsWith("/") ? trimmed.slice(0, -1) : trimmed);
  }
  return endpoints;
}

export function areEndpoints(text: string): boolean {
  for (const endpoint of splitEndpoints(text)) if (!isHttpUrl(endpoint)) return false;
  return true;
}

export function isHostAndPort(text: string): boolean {
  if (!/^[^\s/@?#]+:\d{1,5}$/.test(text)) return false;
  return isHttpUrl(`http://${text}`);
}

export function isDomainName(text: string): boolean {
  const label = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/i;
  const name = text.replace(/\.$/, "");
  return name.length <= 253 && name.split(".").every((part) => label.test(part));
}
