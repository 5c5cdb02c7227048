/** Whether a process of this machine is there, of whatever user. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // One of another user is alive as well.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
