package control

// ParentPipeEnv names the environment variable with the number of an inherited
// descriptor: the read end of a pipe whose write end only the parent holds.
// End of file on it means that the parent is gone, however it ended; the
// process then kills itself at once. The supervisor obeys it (set by Start),
// and so does each component (set by the supervisor).
const ParentPipeEnv = "STORMGLASS_PARENT_PIPE"

// DirEnv names the plane's directory for all subcommands without --dir.
const DirEnv = "STORMGLASS_DIR"
