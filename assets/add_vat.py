"""Add VAT to a net amount."""
from decimal import Decimal


def main(net: Decimal, rate: Decimal = Decimal(20)) -> dict[str, str]:
    vat = (net * rate / 100).quantize(Decimal("0.01"))
    return {"net": str(net), "rate": str(rate),
            "vat": str(vat), "gross": str(net + vat)}
