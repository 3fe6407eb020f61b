// Package failure has the ways in which a rule, a predicate or a score fails, each with a text
// that holds nothing of a payload, and a hint for the rule's author.
package failure
