//! Cases of this domain: `fixtures/cases/policy`.
