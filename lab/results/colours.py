"""The colours that people with any colour vision can tell apart: M. Okabe and K. Ito, "Color
Universal Design", 2008."""

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9", "#F0E442")
