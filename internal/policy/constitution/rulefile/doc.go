// Package rulefile reads the YAML of rules: members with their places, and what is wrong
// with them.
package rulefile
