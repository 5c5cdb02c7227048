export const peerDirectory: string;
