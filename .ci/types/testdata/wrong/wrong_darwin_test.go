package wrong

const tested = lacking
