"""How radio cells share their air: pure models that both engines ask."""
