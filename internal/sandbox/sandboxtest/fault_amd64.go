package sandboxtest

const sysSeccomp = 317
