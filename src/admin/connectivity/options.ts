export const DEFAULT_HOST_PORT = 12_080;

export const DEFAULT_TIMEOUT = "60s";
