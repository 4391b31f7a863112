//! Cases of this domain: `fixtures/cases/links`.
