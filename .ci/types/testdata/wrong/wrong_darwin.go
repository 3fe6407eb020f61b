package wrong

const has = missing
