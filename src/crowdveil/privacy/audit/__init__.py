"""Statistical audits of privacy claims: lower bounds on epsilon from draws of a black box, exact ratios of channels."""
