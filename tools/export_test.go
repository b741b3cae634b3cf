package tools

// CoreTools lets tests outside of the package know all names.
var CoreTools = coreTools
