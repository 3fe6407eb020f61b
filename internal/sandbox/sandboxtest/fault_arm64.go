package sandboxtest

const sysSeccomp = 277
