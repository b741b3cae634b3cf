// Package failpoint kills the process at a named place, so that crash tests can prove what survives. In
// an ordinary build it is empty: Hit compiles to nothing. With the build tag failpoint the variable
// HERALD_FAILPOINT=name[:count] names the place and the how-manieth pass through it that dies.
package failpoint
