// Package bystander starts processes that only wait for their end: control groups are tried
// on them, and they hold a namespace open until it has a descriptor.
package bystander
